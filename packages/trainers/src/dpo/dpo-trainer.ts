import { join } from "node:path";
import { canonicalJson, checkKeys, namedStream, seedOf } from "@periodic-eval/core";
import type { CausalLM, TrainableLM } from "@periodic-eval/core/tfjs";
import { loadPreferences, type PreferenceDataset } from "../data/preference-dataset.ts";
import type { PreferenceSource } from "../data/preference-rows.ts";
import { checkSource } from "../data/read-rows.ts";
import { accumulate } from "../loop/accumulate.ts";
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
import { hashOfLogProbs, keptLogProbs, type ReferenceNumbers } from "./reference-file.ts";
import { checkReference, referenceLogProbs, type Reference } from "./reference.ts";

export interface DPOTrainerOptions extends TrainerOptions<DPOConfig> {
  /** Preferences: a file of JSON Lines or Parquet, or the rows. */
  readonly dataset: PreferenceSource;
  /** Default `"copy"`. */
  readonly reference?: Reference;
}

/**
 * Direct preference optimization on pairs of completions, as TRL 1.16.0: the loss averaged over the pairs of the whole
 * optimizer step, over the completions' tokens only. Metrics have TRL's names: `rewards/chosen`, `rewards/rejected`,
 * `rewards/margins`, `rewards/accuracies`, `logps/chosen`, `logps/rejected`, each a mean over the step's pairs.
 *
 * The reference is read once, before the first step, which takes a pass over all pairs without gradients; what it said is
 * kept in `<runDir>/reference/<phase>.json` for a resume.
 */
export class DPOTrainer extends Trainer<DPOConfig> {
  /**
   * @throws PeriodicEvalError `config` for an option that is unknown or out of range; `data` for a dataset's file that is
   *   not there.
   */
  constructor(options: DPOTrainerOptions) {
    checkKeys("DPOTrainer", options, [...trainerOptionNames, "dataset", "reference"]);
    checkSource("DPOTrainer dataset", options.dataset);
    checkReference(options.model, options.reference ?? "copy");
    const config = parseDPOConfig(options.config);
    super(options, {
      name: "DPO",
      config,
      heldOutMetrics: [],
      prepare: (settings) => prepare(options, config, settings),
    });
  }
}

async function prepare(
  options: DPOTrainerOptions,
  config: DPOConfig,
  settings: TrainingSettings,
): Promise<TrainingData> {
  const { model, tokenizer, dataset: source, reference = "copy" } = options;
  const { maxLength, seed, phase, warn } = settings;
  const isPrecomputed = reference === "precomputed";
  const data = await loadPreferences(source, tokenizer, {
    maxLength,
    onBadRow: config.onBadRow,
    isPrecomputed,
    warn,
  });
  const { rows: pairs, badRows, rowsRead, hash } = data;
  const { pairs: baseline, keep }: ReferenceNumbers = isPrecomputed
    ? { pairs: pairs.map((pair) => pair.reference!), keep: async () => {} }
    : await readReference(lmOf(model, reference), data, options, config, settings);
  const scoresOf = (numbers: readonly number[]) =>
    Float32Array.from([
      ...numbers.map((number) => baseline[number]!.chosen),
      ...numbers.map((number) => baseline[number]!.rejected),
    ]);
  return {
    lengths: pairs.map(({ chosen, rejected }) => Math.max(chosen.ids.length, rejected.ids.length)),
    badRows,
    rowsRead,
    hash,
    exact: {
      reference: hashOfLogProbs(baseline),
    },
    keep,
    work(microBatches, step) {
      const chosen = microBatches.map((numbers) => numbers.map((number) => pairs[number]!));
      const batches = chosen.map((each) => collatePairs(each, model));
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

async function readReference(
  lm: CausalLM & ModelConfigs,
  { rows, hash }: PreferenceDataset,
  { runDir, signal }: DPOTrainerOptions,
  { batchSize }: DPOConfig,
  { phase, warn }: TrainingSettings,
): Promise<ReferenceNumbers> {
  const read = () => referenceLogProbs(lm, rows, { batchSize, signal });
  const model = await fingerprintModel(lm);
  if (model === null) return { pairs: await read(), keep: async () => {} };
  const key = canonicalJson({ pairs: hash, model, batchSize });
  return keptLogProbs(join(runDir, "reference", `${phase}.json`), key, read, warn);
}
