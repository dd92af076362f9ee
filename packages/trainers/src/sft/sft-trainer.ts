import { checkKeys, namedStream, seedOf } from "@periodic-eval/core";
import { collate } from "../data/collate.ts";
import { checkSource, type ConversationSource } from "../data/conversations.ts";
import { loadDataset } from "../data/dataset.ts";
import { accumulate } from "../loop/accumulate.ts";
import {
  Trainer,
  trainerOptionNames,
  type TrainerOptions,
  type TrainingSettings,
} from "../trainer/trainer.ts";
import type { TrainingData } from "../trainer/training-data.ts";
import { batchGradients } from "./gradients.ts";
import { parseSFTConfig, type SFTConfig } from "./sft-config.ts";

export interface SFTTrainerOptions extends TrainerOptions<SFTConfig> {
  /** Conversations: a JSON Lines file, or the rows. */
  readonly dataset: ConversationSource;
}

/**
 * Supervised fine-tuning on conversations, the loss on assistant tokens only: Σ token NLL / Σ scored tokens over the
 * whole optimizer step.
 */
export class SFTTrainer extends Trainer<SFTConfig> {
  /**
   * @throws PeriodicEvalError `config` for an option that is unknown or out of range; `data` for a dataset's file that is
   *   not there.
   */
  constructor(options: SFTTrainerOptions) {
    checkKeys("SFTTrainer", options, [...trainerOptionNames, "dataset"]);
    checkSource("SFTTrainer dataset", options.dataset);
    const config = parseSFTConfig(options.config);
    super(options, { name: "SFT", config, prepare: (settings) => prepare(options, config, settings) });
  }
}

async function prepare(
  { model, tokenizer, dataset: source }: SFTTrainerOptions,
  { onBadRow }: SFTConfig,
  { maxLength, seed, phase }: TrainingSettings,
): Promise<TrainingData> {
  const { rows, badRows, rowsRead, hash } = await loadDataset(source, tokenizer, { maxLength, onBadRow });
  return {
    lengths: rows.map(({ ids }) => ids.length),
    badRows,
    rowsRead,
    hash,
    work(microBatches, step) {
      const rowsOf = microBatches.map((numbers) => numbers.map((number) => rows[number]!));
      const batches = rowsOf.map((each) => collate(each, model.fixedLength));
      return {
        divisor: total(batches.map(({ targets }) => targets.length)),
        tokens: total(batches.map(({ tokens }) => tokens)),
        where: rowsOf.flat().map(({ where }) => where),
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

const total = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);
