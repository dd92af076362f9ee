import { PeriodicEvalError } from "@periodic-eval/core";
import { namedStream, seedOf } from "@periodic-eval/core/random";
import { checkKeys } from "@periodic-eval/core/internal";
import type { TrainableLM } from "@periodic-eval/core/tfjs";
import type { RowsOf } from "../data/bad-rows-file.ts";
import { collate } from "../data/collate.ts";
import type { SFTRow } from "../data/forms.ts";
import { packRows, type PackedRow } from "../data/packing.ts";
import { readDataset } from "../data/phase-rows.ts";
import { readKept } from "../data/read-ahead.ts";
import { checkSource, type RowSource } from "../data/read-rows.ts";
import type { TrainingRow } from "../data/render-row.ts";
import { accumulate } from "../loop/accumulate.ts";
import { checkParts } from "../trainer/check-parts.ts";
import type { OutlinedLM } from "../trainer/outlined-lm.ts";
import {
  Trainer,
  trainerOptionNames,
  type TrainerOptions,
  type TrainingSettings,
} from "../trainer/trainer.ts";
import type { TrainingData, TrainingRows } from "../trainer/training-data.ts";
import { batchGradients } from "./gradients.ts";
import { heldOutLoss } from "./held-out-loss.ts";
import { parseSFTConfig, type SFTConfig } from "./sft-config.ts";

export interface SFTTrainerOptions extends TrainerOptions<SFTConfig> {
  /** A JSON Lines or Parquet file, or the rows. Forms may be mixed. */
  readonly dataset: RowSource<SFTRow>;
  /** Rows to validate on, in place of `validationShare`. */
  readonly validation?: RowSource<SFTRow>;
}

/**
 * Supervised fine-tuning on conversations and texts; `SFTConfig.loss` says on which of their tokens. The loss is Σ token
 * NLL / Σ scored tokens over the whole optimizer step.
 */
export class SFTTrainer extends Trainer<SFTConfig> {
  /**
   * @throws PeriodicEvalError `config` for an option that is unknown or out of range; `data` for a dataset's file that is
   *   not there; `config` for packing on a model that knows no documents.
   */
  constructor(options: SFTTrainerOptions) {
    checkKeys("SFTTrainer", options, [...trainerOptionNames, "dataset", "validation"]);
    checkParts("SFTTrainer", options);
    checkSource("SFTTrainer dataset", options.dataset);
    const { dataset, validation } = options;
    if (validation !== undefined) checkSource("SFTTrainer validation", validation);
    const config = parseSFTConfig(options.config);
    if (config.packing) checkPacking(options.model);
    super(options, {
      name: "SFT",
      config,
      heldOutMetrics: ["loss", "perplexity"],
      prepare: (settings) => prepare(options, { source: dataset, of: "dataset" }, config, settings),
      ...(validation && {
        prepareValidation: (settings) =>
          prepare(options, { source: validation, of: "validation" }, config, settings),
      }),
    });
  }
}

async function prepare(
  options: SFTTrainerOptions,
  { source, of }: { readonly source: RowSource<SFTRow>; readonly of: RowsOf },
  config: SFTConfig,
  settings: TrainingSettings,
): Promise<TrainingData> {
  const { onBadRow, loss, packing } = config;
  const { maxLength, phase, warn } = settings;
  const { model, tokenizer, runDir } = options;
  const { vocabSize } = model;
  const where = { source, of, phase, runDir, tokenizer };
  const dataset = await readDataset(readKept, where, { maxLength, onBadRow, loss, vocabSize });
  const { rows, badRows, badRowsListed, rowsRead, hash } = dataset;
  for (const warning of dataset.warnings) warn("dataset", warning);
  const ofRows = (some: readonly TrainingRow[]) =>
    trainingRows(options.model, packing ? packRows(some, maxLength) : some, { ...settings, hash });
  return {
    ...ofRows(rows),
    badRows,
    badRowsListed,
    rowsRead,
    hash,
    ...(packing && {
      packed: {
        count: rows.length,
        only: (numbers: readonly number[]) => ofRows(numbers.map((number) => rows[number]!)),
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
        divisor: total(batches.map(({ targets }) => targets.length)),
        tokens: total(batches.map(({ tokens }) => tokens)),
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
  throw new PeriodicEvalError({
    code: "config",
    where: "SFT config packing",
    got: "true, for a model whose documents in one row would see each other",
    expected: "a model that takesDocuments",
    fix: "Leave packing out, or let the model's trainingLogits take documentStarts and say so.",
  });
}

const total = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);
