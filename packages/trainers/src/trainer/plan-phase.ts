import type { Json } from "@periodic-eval/core";
import { workingSeconds } from "@periodic-eval/store";
import { memoryErrorOf } from "@periodic-eval/tfjs";
import type { PhaseStart } from "../checkpoint/trainer-state.ts";
import { stepsPerEpochOf, holdOut, planData } from "../data/batching.ts";
import { Learner } from "../loop/learner.ts";
import type { Phase } from "../loop/phase.ts";
import { type TrainingData, type TrainingRows, validationOn } from "../loop/training-data.ts";
import type { LearningRate } from "../optimizer/learning-rate.ts";
import type { OutlinedLM } from "./checks.ts";
import type { TrainerOptions, MethodRows, TrainingMethod, TrainingSettings } from "./trainer-options.ts";
import { decayStepsOf, phaseSteps, scheduleOf, type TrainingConfig } from "./training-config.ts";
import { trainingSizeOf, type TrainingSize, trainingAdvice } from "./training-memory.ts";

/** Facts about a phase that its rows and configuration determine before the first step. */
export interface PhasePlan {
  /** Numbers of the rows to train on, ascending. */
  readonly training: readonly number[];
  /** Numbers of the rows that `validationShare` holds out, ascending; null without it. */
  readonly heldOut: readonly number[] | null;
  /** Tokens of each row of the batches. */
  readonly lengths: readonly number[];
  readonly stepsPerEpoch: number;
  /** Optimizer steps of the phase. */
  readonly maxSteps: number;
  readonly learningRate: LearningRate;
  /** The largest pass of a step. */
  readonly size: TrainingSize;
}

/**
 * Plans a phase: which rows train, in how many steps and passes of which size. Reads no weights.
 *
 * @throws PeriodicEvalError `data` if the held-out share leaves no row to train on, `config` if warm-up and decay are longer
 *   than the phase.
 */
export function planPhase<C extends TrainingConfig>(
  { name, config, sequencesPerRow }: TrainingMethod<C>,
  rows: MethodRows,
  { model, phase }: { readonly model: Pick<OutlinedLM, "fixedLength">; readonly phase: string },
): PhasePlan {
  const { validationShare, seed } = config;
  const all = Array.from({ length: rows.count }, (_, row) => row);
  const share =
    validationShare === null ? null : holdOut(rows.count, validationShare, { seed: String(seed), phase });
  const training = share?.training ?? all;
  const lengths = rows.lengthsOf(training);
  const stepsPerEpoch = stepsPerEpochOf(lengths.length, config);
  const maxSteps = phaseSteps(config, stepsPerEpoch);
  return {
    training,
    heldOut: share?.validation ?? null,
    lengths,
    stepsPerEpoch,
    maxSteps,
    learningRate: scheduleOf(`${name} config`, config, maxSteps),
    size: trainingSizeOf(lengths, config, { sequencesPerRow, model }),
  };
}

interface PhaseParts<C extends TrainingConfig> {
  readonly method: TrainingMethod<C>;
  readonly options: TrainerOptions<C>;
  readonly settings: TrainingSettings;
  readonly plan: PhasePlan;
  readonly data: TrainingData;
  /** Separate validation rows; null if there are none. */
  readonly validationRows: TrainingRows | null;
  /** Facts about the model that must be equal for an exact resume. */
  readonly exactModel: Readonly<Record<string, Json>>;
  readonly start: PhaseStart | undefined;
}

/** Builds the phase that the training loop runs. The caller disposes its learner. */
export function buildPhase<C extends TrainingConfig>(parts: PhaseParts<C>): Phase {
  const { options, settings, data, exactModel, start } = parts;
  const { config } = parts.method;
  const { maxSteps, stepsPerEpoch, learningRate, size, heldOut } = parts.plan;
  const { model, tokenizer, runDir, signal, session } = options;
  const { phase, seed, warn } = settings;
  const { batchSize, gradientAccumulation } = config;
  const training = data.select(parts.plan.training);
  const validation = heldOut === null ? parts.validationRows : data.select(heldOut);
  const { microBatches } = planData(training.lengths, { batchSize, gradientAccumulation, seed, phase });
  return {
    name: phase,
    maxSteps,
    stepsPerEpoch,
    config,
    signal: signal ?? null,
    clock: session?.clock ?? workingSeconds,
    warn,
    learner: new Learner({ model, config, phase, runDir, warn }),
    learningRate,
    validation: validation && validationOn(validation, batchSize),
    start,
    exact: (step) => ({
      ...exactConfig(config, maxSteps, step),
      data: data.hash,
      ...data.exact,
      tokenizer: tokenizer.fingerprint,
      ...exactModel,
    }),
    work: (step) => training.work(microBatches(step), step),
    explain: (error, doing) =>
      memoryErrorOf(error, `phase "${phase}", ${doing}`, () => trainingAdvice(model, size)),
  };
}

/** Options that a resume may change, because they affect neither the data nor the arithmetic of a step. */
const mayChange = [
  "epochs",
  "maxSteps",
  "saveSteps",
  "keepCheckpoints",
  "keepBest",
  "restore",
  "evalSteps",
  "saveAdapterAtFiring",
  "logSteps",
  "onBadRow",
  "onNonFinite",
  "maxSkippedInARow",
] as const;

/** Options that have no effect on `wsd` before its decay begins. */
const decayOptions = ["decaySteps", "decayRatio", "decayType"] as const;

/**
 * Returns the options that must be equal for an exact resume. The length of the phase is among them if learning rates depend
 * on it. Those of `wsd` do so only from the decay on, so that training that stopped earlier can be extended.
 *
 * @param maxSteps Optimizer steps of the phase, from `epochs` or `maxSteps`.
 * @param step Completed optimizer steps.
 */
export function exactConfig(
  config: TrainingConfig,
  maxSteps: number,
  step: number,
): Readonly<Record<string, Json>> {
  const { schedule, warmupRatio } = config;
  const isStable = schedule === "wsd" && step <= maxSteps - decayStepsOf(config, maxSteps);
  const free: readonly string[] = isStable ? [...mayChange, ...decayOptions] : mayChange;
  // An option that is off changes nothing, so it is left out.
  const isOff = (name: string) => name === "activationCheckpointing" && !config.activationCheckpointing;
  const lasting = Object.entries(config).filter(([name]) => !free.includes(name) && !isOff(name));
  const dependsOnLength = (schedule !== "constant" && !isStable) || (warmupRatio ?? 0) > 0;
  return { ...Object.fromEntries(lasting), ...(dependsOnLength && { maxSteps }) };
}
