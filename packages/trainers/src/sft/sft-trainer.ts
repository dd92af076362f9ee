import { configError } from "@periodic-eval/core/internal";
import { namedStream, seedOf } from "@periodic-eval/core/random";
import type { TrainableLM } from "@periodic-eval/core/tfjs";
import { z } from "zod";
import type { RowsOf } from "../data/bad-rows-file.ts";
import { collate } from "../data/collate.ts";
import type { SFTRow } from "../data/forms.ts";
import { packRows, type PackedRow } from "../data/packing.ts";
import { readDataset } from "../data/phase-rows.ts";
import { readKept } from "../data/read-ahead.ts";
import type { RowSource } from "../data/read-rows.ts";
import type { TrainingRow } from "../data/render-row.ts";
import { accumulate } from "../loop/step-work.ts";
import type { TrainingData, TrainingRows } from "../loop/training-data.ts";
import type { OutlinedLM } from "../trainer/check-parts.ts";
import { checkTrainerOptions, Trainer } from "../trainer/trainer.ts";
import { trainerFields, uncheckedField, type TrainerOptions } from "../trainer/trainer-options.ts";
import type { TrainingSettings } from "../trainer/training-method.ts";
import { batchGradients, heldOutLoss } from "./batch-loss.ts";
import { parseSFTConfig, type SFTConfig } from "./sft-config.ts";

export interface SFTTrainerOptions extends TrainerOptions<SFTConfig> {
  /** A JSON Lines or Parquet file, or the rows. Rows of different forms may be mixed. */
  readonly dataset: RowSource<SFTRow>;
  /** Validation rows; an alternative to `validationShare`. */
  readonly validation?: RowSource<SFTRow>;
}

const optionsSchema = z.strictObject({
  ...trainerFields,
  dataset: uncheckedField,
  validation: uncheckedField,
} satisfies Record<keyof SFTTrainerOptions, z.ZodType>);

/**
 * Supervised fine-tuning on conversations and texts. `SFTConfig.loss` selects the scored tokens. The loss is Σ token NLL /
 * Σ scored tokens over the whole optimizer step.
 */
export class SFTTrainer extends Trainer<SFTConfig> {
  /**
   * @throws PeriodicEvalError `config` for an unknown or invalid option, or for packing on a model that does not support
   *   documents; `data` for a dataset file that does not exist.
   */
  constructor(options: SFTTrainerOptions) {
    checkTrainerOptions("SFT", optionsSchema, options);
    const config = parseSFTConfig(options.config);
    if (config.packing) checkPacking(options.model);
    super(options, {
      name: "SFT",
      config,
      heldOutMetrics: ["loss", "perplexity"],
      hasValidation: options.validation !== undefined,
      prepare: (settings, of) => prepare(options, of, config, settings),
    });
  }
}

async function prepare(
  options: SFTTrainerOptions,
  of: RowsOf,
  config: SFTConfig,
  settings: TrainingSettings,
): Promise<TrainingData> {
  const { onBadRow, loss, packing } = config;
  const { maxLength, phase, warn } = settings;
  const { model, tokenizer, runDir } = options;
  const { vocabSize } = model;
  const where = { source: options[of]!, of, phase, runDir, tokenizer };
  const dataset = await readDataset(readKept, where, { maxLength, onBadRow, loss, vocabSize });
  const { rows, badRows, badRowsListed, rowsRead, hash } = dataset;
  for (const warning of dataset.warnings) warn("dataset", warning);
  const trainOn = (some: readonly TrainingRow[]) =>
    trainingRows(options.model, packing ? packRows(some, maxLength) : some, { ...settings, hash });
  return {
    ...trainOn(rows),
    badRows,
    badRowsListed,
    rowsRead,
    hash,
    ...(packing && {
      packed: {
        count: rows.length,
        only: (numbers: readonly number[]) => trainOn(numbers.map((number) => rows[number]!)),
      },
    }),
  };
}

function trainingRows(
  model: TrainableLM,
  rows: readonly (TrainingRow | PackedRow)[],
  { seed, phase, hash }: TrainingSettings & Pick<TrainingData, "hash">,
): TrainingRows {
  const batchOf = (numbers: readonly number[]) =>
    collate(
      numbers.map((number) => rows[number]!),
      model.fixedLength,
    );
  return {
    lengths: rows.map(({ ids }) => ids.length),
    heldOut: {
      hash,
      measure: (numbers) => heldOutLoss(model, numbers.map(batchOf)),
    },
    work(microBatches, step) {
      const batches = microBatches.map(batchOf);
      return {
        divisor: sumOf(batches.map(({ targets }) => targets.length)),
        tokens: sumOf(batches.map(({ tokens }) => tokens)),
        where: microBatches.flat().flatMap((number) => rows[number]!.where),
        gradients: () =>
          accumulate(
            batches.map(
              (batch, i) => () =>
                batchGradients(model, batch, (place) => namedStream(seedOf(seed, phase, step, i, place))),
            ),
          ),
      };
    },
  };
}

function checkPacking({ takesDocuments = false }: OutlinedLM): void {
  if (takesDocuments) return;
  throw configError({
    where: "SFT config",
    path: ["packing"],
    got: "true, for a model in which documents of one row would see each other",
    expected: "a model with takesDocuments",
    fix: "Remove packing, or support documentStarts in the model's trainingLogits and set takesDocuments.",
  });
}

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);
