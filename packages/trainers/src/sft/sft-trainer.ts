import { checkKeys, namedStream, PeriodicEvalError, seedOf } from "@periodic-eval/core";
import type { TrainableLM } from "@periodic-eval/core/tfjs";
import { collate } from "../data/collate.ts";
import { loadDataset } from "../data/dataset.ts";
import type { SFTRow } from "../data/forms.ts";
import { packRows } from "../data/packing.ts";
import { checkSource, type RowSource } from "../data/read-rows.ts";
import { accumulate } from "../loop/accumulate.ts";
import {
  Trainer,
  trainerOptionNames,
  type TrainerOptions,
  type TrainingSettings,
} from "../trainer/trainer.ts";
import type { TrainingData } from "../trainer/training-data.ts";
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
    checkSource("SFTTrainer dataset", options.dataset);
    const { dataset, validation } = options;
    if (validation !== undefined) checkSource("SFTTrainer validation", validation);
    const config = parseSFTConfig(options.config);
    if (config.packing) checkPacking(options.model);
    super(options, {
      name: "SFT",
      config,
      heldOutMetrics: ["loss", "perplexity"],
      prepare: (settings) => prepare(options, dataset, config, settings),
      ...(validation && {
        prepareValidation: (settings) => prepare(options, validation, config, settings),
      }),
    });
  }
}

async function prepare(
  { model, tokenizer }: SFTTrainerOptions,
  source: RowSource<SFTRow>,
  { onBadRow, loss, packing }: SFTConfig,
  { maxLength, seed, phase, warn }: TrainingSettings,
): Promise<TrainingData> {
  const dataset = await loadDataset(source, tokenizer, { maxLength, onBadRow, loss });
  const { badRows, rowsRead, hash } = dataset;
  for (const warning of dataset.warnings) warn("dataset", warning);
  const rows = packing ? packRows(dataset.rows, maxLength) : dataset.rows;
  const batchOf = (numbers: readonly number[]) =>
    collate(
      numbers.map((number) => rows[number]!),
      model.fixedLength,
    );
  return {
    lengths: rows.map(({ ids }) => ids.length),
    badRows,
    rowsRead,
    hash,
    heldOut: {
      hash,
      measure: (numbers) => heldOutLoss(model, numbers.map(batchOf)),
    },
    work(microBatches, step) {
      const rowsOf = microBatches.map((numbers) => numbers.map((number) => rows[number]!));
      const batches = microBatches.map(batchOf);
      return {
        divisor: total(batches.map(({ targets }) => targets.length)),
        tokens: total(batches.map(({ tokens }) => tokens)),
        where: rowsOf.flat().flatMap(({ where }) => where),
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

function checkPacking({ takesDocuments = false }: TrainableLM): void {
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
