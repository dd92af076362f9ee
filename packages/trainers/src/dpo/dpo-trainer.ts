import { join } from "node:path";
import { canonicalJson, namedStream, seedOf } from "@periodic-eval/core/random";
import { checkKeys } from "@periodic-eval/core/internal";
import type { CausalLM, TrainableLM } from "@periodic-eval/core/tfjs";
import type { RowsOf } from "../data/bad-rows-file.ts";
import { readPreferences } from "../data/phase-rows.ts";
import type { PreferenceDataset } from "../data/preference-dataset.ts";
import type { PreferenceSource } from "../data/preference-rows.ts";
import { readKept } from "../data/read-ahead.ts";
import { checkSource } from "../data/read-rows.ts";
import { accumulate } from "../loop/accumulate.ts";
import { checkParts } from "../trainer/check-parts.ts";
import { fingerprintModel, type ModelConfigs } from "../trainer/model-identity.ts";
import {
  Trainer,
  trainerOptionNames,
  type TrainerOptions,
  type TrainingSettings,
} from "../trainer/trainer.ts";
import type { TrainingData } from "../trainer/training-data.ts";
import { parseDPOConfig, type DPOConfig } from "./dpo-config.ts";
import { collatePairs, pairGradients } from "./gradients.ts";
import { heldOutPairMetrics, heldOutRewards } from "./held-out-rewards.ts";
import { hashOfLogProbs, keptLogProbs, type ReferenceNumbers } from "./reference-file.ts";
import { checkReference, referenceLogProbs, type Reference } from "./reference.ts";

export interface DPOTrainerOptions extends TrainerOptions<DPOConfig> {
  /** Preferences: a file of JSON Lines or Parquet, or the rows. */
  readonly dataset: PreferenceSource;
  /** Preferences to validate on, in place of `validationShare`. */
  readonly validation?: PreferenceSource;
  /** Default `"copy"`. */
  readonly reference?: Reference;
}

/**
 * Direct preference optimization on pairs of completions, as TRL 1.16.0: the loss averaged over the pairs of the whole
 * optimizer step, over the completions' tokens only. Metrics have TRL's names: `rewards/chosen`, `rewards/rejected`,
 * `rewards/margins`, `rewards/accuracies`, `logps/chosen`, `logps/rejected`, each a mean over the step's pairs.
 *
 * The reference is read once, before the first step, which takes a pass over all pairs without gradients; what it said is
 * kept in `<runDir>/reference/<phase>.json` for a resume, that of rows given to validate on in
 * `<runDir>/reference/validation/<phase>.json`. Held-out pairs give the loss and the same metrics, named as TRL names them:
 * `eval_loss`, `eval_rewards/accuracies`.
 */
export class DPOTrainer extends Trainer<DPOConfig> {
  /**
   * @throws PeriodicEvalError `config` for an option that is unknown or out of range; `data` for a dataset's file that is
   *   not there.
   */
  constructor(options: DPOTrainerOptions) {
    checkKeys("DPOTrainer", options, [...trainerOptionNames, "dataset", "validation", "reference"]);
    checkParts("DPOTrainer", options);
    const { dataset, validation } = options;
    checkSource("DPOTrainer dataset", dataset);
    if (validation !== undefined) checkSource("DPOTrainer validation", validation);
    checkReference(options.model, options.reference ?? "copy");
    const config = parseDPOConfig(options.config);
    super(options, {
      name: "DPO",
      config,
      heldOutMetrics: heldOutPairMetrics,
      prepare: (settings) => prepare(options, { source: dataset, of: "dataset" }, config, settings),
      ...(validation && {
        prepareValidation: (settings) =>
          prepare(options, { source: validation, of: "validation" }, config, settings),
      }),
    });
  }
}

interface PairSource {
  readonly source: PreferenceSource;
  readonly of: RowsOf;
}

/** Where below `<runDir>/reference` is kept what the reference says of pairs. */
const folders: Readonly<Record<RowsOf, string>> = { dataset: "", validation: "validation" };

async function prepare(
  options: DPOTrainerOptions,
  { source, of }: PairSource,
  config: DPOConfig,
  settings: TrainingSettings,
): Promise<TrainingData> {
  const { model, tokenizer, runDir, reference = "copy" } = options;
  const { maxLength, seed, phase, warn } = settings;
  const keptAt = join(runDir, "reference", folders[of], `${phase}.json`);
  const isPrecomputed = reference === "precomputed";
  const where = { source, of, phase, runDir, tokenizer };
  const { vocabSize } = model;
  const { onBadRow } = config;
  const data = await readPreferences(readKept, where, { maxLength, onBadRow, isPrecomputed, vocabSize });
  for (const warning of data.warnings) warn("dataset", warning);
  const { rows: pairs, badRows, badRowsListed, rowsRead, hash } = data;
  const { pairs: baseline, keep }: ReferenceNumbers = isPrecomputed
    ? { pairs: pairs.map((pair) => pair.reference!), keep: async () => {} }
    : await readReference(lmOf(model, reference), data, {
        ...options,
        ...config,
        keptAt,
        warn,
        hashWeights: settings.hashWeights,
      });
  const hashOfReference = hashOfLogProbs(baseline);
  const scoresOf = (numbers: readonly number[]) =>
    Float32Array.from([
      ...numbers.map((number) => baseline[number]!.chosen),
      ...numbers.map((number) => baseline[number]!.rejected),
    ]);
  const batchOf = (numbers: readonly number[]) =>
    collatePairs(
      numbers.map((number) => pairs[number]!),
      model,
    );
  return {
    lengths: pairs.map(({ chosen, rejected }) => Math.max(chosen.ids.length, rejected.ids.length)),
    badRows,
    badRowsListed,
    rowsRead,
    hash,
    exact: { reference: hashOfReference },
    keep,
    heldOut: {
      hash: `${hash}, reference ${hashOfReference}`,
      measure: async (numbers) =>
        heldOutRewards(
          model,
          numbers.map((each) => ({ batch: batchOf(each), reference: scoresOf(each) })),
          config,
        ),
    },
    work(microBatches, step) {
      const chosen = microBatches.map((numbers) => numbers.map((number) => pairs[number]!));
      const batches = microBatches.map(batchOf);
      return {
        divisor: chosen.flat().length,
        tokens: batches.reduce((sum, { tokens }) => sum + tokens, 0),
        where: chosen.flat().map(({ where }) => where),
        gradients() {
          const restore = config.disableDropout ? model.enterEval?.() : undefined;
          try {
            return accumulate(
              batches.map((batch, i) => () => {
                const random = (place: string) => namedStream(seedOf(seed, phase, step, i, place));
                return pairGradients(model, batch, scoresOf(microBatches[i]!), { ...config, random });
              }),
            );
          } finally {
            restore?.();
          }
        },
      };
    },
  };
}

const lmOf = (model: TrainableLM, reference: Exclude<Reference, "precomputed">): CausalLM =>
  reference === "copy" ? model : reference === "base" ? model.base! : reference;

interface ReadingOptions extends Pick<DPOTrainerOptions, "signal">, Pick<DPOConfig, "batchSize"> {
  readonly keptAt: string;
  readonly warn: TrainingSettings["warn"];
  readonly hashWeights: TrainingSettings["hashWeights"];
}

async function readReference(
  lm: CausalLM & ModelConfigs,
  { rows, hash }: PreferenceDataset,
  { signal, batchSize, keptAt, warn, hashWeights }: ReadingOptions,
): Promise<ReferenceNumbers> {
  const read = () => referenceLogProbs(lm, rows, { batchSize, signal });
  const model = await fingerprintModel(lm, hashWeights);
  if (model === null) return { pairs: await read(), keep: async () => {} };
  return keptLogProbs(keptAt, canonicalJson({ pairs: hash, model, batchSize }), read, warn);
}
