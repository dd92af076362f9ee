import { join } from "@periodic-eval/store/platform";
import { canonicalJson, namedStream, seedOf } from "@periodic-eval/core/random";
import { inEvaluation, windowLength, type CausalLM, type TrainableLM } from "@periodic-eval/tfjs";
import * as z from "zod";
import type { RowsOf } from "../data/bad-row.ts";
import { readPreferences, type Reading } from "../data/phase-rows.ts";
import type { PreferenceDataset } from "../data/dataset.ts";
import type { PreferenceSource, PreferencePair } from "../data/preference-rows.ts";
import { accumulate, type TrainingRows } from "../loop/training-data.ts";
import { fingerprintModel, type ModelConfigs } from "../trainer/model-identity.ts";
import { checkTrainerOptions, Trainer } from "../trainer/trainer.ts";
import {
  trainerFields,
  uncheckedField,
  type TrainerOptions,
  mostTexts,
  type MethodRows,
  type TrainingMethod,
  type TrainingSettings,
} from "../trainer/trainer-options.ts";
import { parseDPOConfig, type DPOConfig } from "./dpo-config.ts";
import { collatePairs, heldOutPairMetrics, heldOutRewards, pairGradients } from "./pair-batch.ts";
import {
  hashOfLogProbs,
  loadOrRead,
  type StoredReference,
  checkReference,
  referenceLogProbs,
  type PairLogProbs,
  type Reference,
} from "./reference.ts";

export interface DPOTrainerOptions extends TrainerOptions<DPOConfig> {
  /** Preference pairs: a JSON Lines or Parquet file, or the rows. */
  readonly dataset: PreferenceSource;
  /** Validation pairs; an alternative to `validationShare`. */
  readonly validation?: PreferenceSource;
  /** Default `"copy"`. */
  readonly reference?: Reference;
}

const optionsSchema = z.strictObject({
  ...trainerFields,
  dataset: uncheckedField,
  validation: uncheckedField,
  reference: uncheckedField,
} satisfies Record<keyof DPOTrainerOptions, z.ZodType>);

/**
 * Direct preference optimization on pairs of completions, as in TRL 1.16.0: the loss covers only tokens of the completions
 * and is averaged over the pairs of the whole optimizer step. Metrics have TRL's names: `rewards/chosen`,
 * `rewards/rejected`, `rewards/margins`, `rewards/accuracies`, `logps/chosen`, `logps/rejected`, each a mean over the step's
 * pairs.
 *
 * The reference runs once, before the first step: one pass over all pairs without gradients. Its log-probs are stored for a
 * resume, in `<runDir>/reference/<phase>.json` and, for separate validation rows, in
 * `<runDir>/reference/validation/<phase>.json`. Validation gives the loss and the same metrics under TRL's names:
 * `eval_loss`, `eval_rewards/accuracies`.
 */
export class DPOTrainer extends Trainer<DPOConfig> {
  /**
   * @throws PeriodicEvalError `config` for an unknown or invalid option; `data` for a dataset file that does not exist.
   */
  constructor(options: DPOTrainerOptions) {
    checkTrainerOptions("DPO", optionsSchema, options);
    checkReference(options.model, options.reference ?? "copy");
    super(options, dpoMethod(options));
  }
}

/** The options on which the method depends. The model's weights need not be loaded before `prepare`. */
export type DPOMethodOptions = Pick<
  DPOTrainerOptions,
  "model" | "tokenizer" | "dataset" | "validation" | "reference" | "config" | "signal"
>;

/** @throws PeriodicEvalError `config` for a wrong configuration. */
export function dpoMethod(options: DPOMethodOptions): TrainingMethod<DPOConfig> {
  const config = parseDPOConfig(options.config);
  return {
    name: "DPO",
    config,
    heldOutMetrics: heldOutPairMetrics,
    sequencesPerRow: 2,
    hasValidation: options.validation !== undefined,
    read: (reading, of) => read(options, of, config, reading),
  };
}

/** Folders of stored log-probs, relative to `<runDir>/reference`. */
const folders: Readonly<Record<RowsOf, string>> = { dataset: "", validation: "validation" };

async function read(
  options: DPOMethodOptions,
  of: RowsOf,
  config: DPOConfig,
  reading: Reading,
): Promise<MethodRows> {
  const { model, tokenizer, reference = "copy" } = options;
  const isPrecomputed = reference === "precomputed";
  const { vocabSize } = model;
  const { onBadRow, maxLength } = config;
  const data = await readPreferences(
    { ...reading, source: options[of]!, of, tokenizer },
    { maxLength: maxLength ?? windowLength(model), onBadRow, isPrecomputed, vocabSize },
  );
  const { rows: pairs, hash, ...read } = data;
  return {
    ...read,
    count: pairs.length,
    texts: pairs.slice(0, mostTexts).map(({ chosen }) => [...chosen.ids]),
    lengthsOf: (numbers) => numbers.map((number) => lengthOf(pairs[number]!)),
    async prepare(settings) {
      const { pairs: scores, keep } = await scoresOf(options, of, config, { data, settings });
      const referenceHash = hashOfLogProbs(scores);
      const heldOutHash = `${hash}, reference ${referenceHash}`;
      const select = (numbers: readonly number[]) =>
        pairRows(
          model,
          {
            pairs: numbers.map((number) => pairs[number]!),
            scores: numbers.map((number) => scores[number]!),
            hash: heldOutHash,
          },
          config,
          settings,
        );
      return { select, hash, exact: { reference: referenceHash }, keep };
    },
  };
}

const lengthOf = ({ chosen, rejected }: PreferencePair): number =>
  Math.max(chosen.ids.length, rejected.ids.length);

/** Returns the reference's log-probs of all pairs: those of the rows, or of a pass over them. */
async function scoresOf(
  { model, signal, reference = "copy" }: DPOMethodOptions,
  of: RowsOf,
  { batchSize }: DPOConfig,
  { data, settings }: { readonly data: PreferenceDataset; readonly settings: TrainingSettings },
): Promise<StoredReference> {
  const { rows, hash } = data;
  if (reference === "precomputed")
    return { pairs: rows.map((pair) => pair.reference!), keep: async () => {} };
  const { phase, runDir, warn } = settings;
  const lm: CausalLM & ModelConfigs =
    reference === "copy" ? model : reference === "base" ? model.base! : reference;
  const read = () => referenceLogProbs(lm, rows, { batchSize, signal });
  const facts = await fingerprintModel(lm);
  if (facts === null) return { pairs: await read(), keep: async () => {} };
  const path = join(runDir, "reference", folders[of], `${phase}.json`);
  return loadOrRead(path, canonicalJson({ pairs: hash, model: facts, batchSize }), read, warn);
}

interface ScoredPairs {
  readonly pairs: readonly PreferencePair[];
  readonly scores: readonly PairLogProbs[];
  readonly hash: string;
}

function pairRows(
  model: TrainableLM,
  { pairs, scores, hash }: ScoredPairs,
  config: DPOConfig,
  { seed, phase }: TrainingSettings,
): TrainingRows {
  const scoresOf = (numbers: readonly number[]) =>
    Float32Array.from([
      ...numbers.map((number) => scores[number]!.chosen),
      ...numbers.map((number) => scores[number]!.rejected),
    ]);
  const batchOf = (numbers: readonly number[]) =>
    collatePairs(
      numbers.map((number) => pairs[number]!),
      model,
    );
  return {
    lengths: pairs.map(lengthOf),
    heldOut: {
      hash,
      measure: async (numbers) =>
        heldOutRewards(
          model,
          numbers.map((each) => ({ batch: batchOf(each), reference: scoresOf(each) })),
          config,
        ),
    },
    work(microBatches, step) {
      const numbers = microBatches.flat();
      const batches = microBatches.map(batchOf);
      return {
        divisor: numbers.length,
        tokens: batches.reduce((sum, { tokens }) => sum + tokens, 0),
        where: numbers.map((number) => pairs[number]!.where),
        gradients() {
          const passes = batches.map((batch, i) => () => {
            const random = (place: string) => namedStream(seedOf(seed, phase, step, i, place));
            return pairGradients(model, batch, scoresOf(microBatches[i]!), { ...config, random });
          });
          return config.disableDropout ? inEvaluation(model, () => accumulate(passes)) : accumulate(passes);
        },
      };
    },
  };
}
