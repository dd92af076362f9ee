import type { Json } from "@periodic-eval/core";
import { workingSeconds } from "@periodic-eval/store";
import { memoryErrorOf } from "@periodic-eval/tfjs";
import type { PhaseStart } from "../checkpoint/trainer-state.ts";
import { planData } from "../data/batching.ts";
import { Learner } from "../loop/learner.ts";
import type { Phase } from "../loop/phase.ts";
import type { TrainingData, TrainingRows } from "../loop/training-data.ts";
import { validationOn } from "../loop/validation.ts";
import type { PhasePlan } from "./plan-phase.ts";
import { decayStepsOf } from "./schedule.ts";
import type { TrainerOptions } from "./trainer-options.ts";
import type { TrainingConfig } from "./training-config.ts";
import { trainingAdvice } from "./training-memory.ts";
import type { TrainingMethod, TrainingSettings } from "./training-method.ts";

export interface PhaseParts<C extends TrainingConfig> {
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
