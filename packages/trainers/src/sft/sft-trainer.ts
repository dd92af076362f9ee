import * as z from "zod";
import * as tf from "@tensorflow/tfjs-core";
import { configError } from "@periodic-eval/contracts/options";
import { namedStream, seedOf } from "@periodic-eval/core/random";
import { windowLength, type TrainableLM, type NamedRandom } from "@periodic-eval/tfjs";
import type { RowsOf } from "../data/bad-row.ts";
import { collate, scoredTokensOf, type Batch } from "../data/collate.ts";
import type { SFTRow } from "../data/forms.ts";
import { packRows, type PackedRow } from "../data/packing.ts";
import { readDataset, type Reading } from "../data/phase-rows.ts";
import type { RowSource } from "../data/read-rows.ts";
import type { TrainingRow } from "../data/render-row.ts";
import {
  accumulate,
  type TrainingData,
  type TrainingRows,
  type LossAndGradients,
} from "../loop/training-data.ts";
import { total, evaluatedLosses, tokenLosses, meansOver } from "../losses/token-losses.ts";
import type { OutlinedLM } from "../trainer/checks.ts";
import {
  trainerFields,
  uncheckedField,
  type TrainerOptions,
  mostTexts,
  type MethodRows,
  type TrainingMethod,
  type TrainingSettings,
} from "../trainer/trainer-options.ts";
import { checkTrainerOptions, Trainer } from "../trainer/trainer.ts";
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
    super(options, sftMethod(options));
  }
}

/** The options on which the method depends. The model's weights need not be loaded before `prepare`. */
export type SFTMethodOptions = Pick<
  SFTTrainerOptions,
  "model" | "tokenizer" | "dataset" | "validation" | "config"
>;

/** @throws PeriodicEvalError `config` for a wrong configuration, or packing on a model that does not support documents. */
export function sftMethod(options: SFTMethodOptions): TrainingMethod<SFTConfig> {
  const config = parseSFTConfig(options.config);
  if (config.packing) checkPacking(options.model);
  return {
    name: "SFT",
    config,
    heldOutMetrics: ["loss", "perplexity"],
    hasValidation: options.validation !== undefined,
    read: (reading, of) => read(options, of, config, reading),
  };
}

async function read(
  { model, tokenizer, ...sources }: SFTMethodOptions,
  of: RowsOf,
  { onBadRow, loss, packing, maxLength: configured }: SFTConfig,
  reading: Reading,
): Promise<MethodRows> {
  const { vocabSize } = model;
  const maxLength = configured ?? windowLength(model);
  const from = { ...reading, source: sources[of]!, of, tokenizer };
  const { rows, hash, ...read } = await readDataset(from, { maxLength, onBadRow, loss, vocabSize });
  const batched = (numbers: readonly number[]) => {
    const some = numbers.map((number) => rows[number]!);
    return packing ? packRows(some, maxLength) : some;
  };
  return {
    ...read,
    count: rows.length,
    texts: rows.slice(0, mostTexts).map(({ ids }) => [...ids]),
    lengthsOf: (numbers) => batched(numbers).map(({ ids }) => ids.length),
    prepare: async (settings) => ({
      select: (numbers) => trainingRows(model, batched(numbers), { ...settings, hash }),
      hash,
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

/**
 * Returns Σ NLL over the scored tokens of a batch, in nats, and its gradients. The caller disposes both.
 *
 * @param random Streams for dropout.
 */
export function batchGradients(model: TrainableLM, batch: Batch, random: NamedRandom): LossAndGradients {
  return tf.tidy(() => {
    const tokens = scoredTokensOf(batch);
    const { value, grads } = tf.variableGrads(
      () => total(tokenLosses(model, tokens, random)),
      [...model.trainables()],
    );
    return { loss: value, gradients: grads };
  });
}

/** Returns Σ NLL / Σ scored tokens over all batches, in nats, and its exponential. Runs forward in evaluation mode. */
export async function heldOutLoss(
  model: TrainableLM,
  batches: Iterable<Batch>,
): Promise<{ readonly loss: number; readonly perplexity: number }> {
  const { loss } = await meansOver(batches, (batch) => {
    const losses = evaluatedLosses(model, scoredTokensOf(batch));
    return { sums: { loss: tf.sum<tf.Scalar>(losses) }, count: batch.targets.length };
  });
  return { loss, perplexity: Math.exp(loss) };
}
