import type { Json } from "@periodic-eval/core";
import { memoryErrorOf } from "@periodic-eval/core/tfjs";
import type { PhaseStart } from "../checkpoint/trainer-state.ts";
import { planData } from "../data/batching.ts";
import { holdOut } from "../data/hold-out.ts";
import { Learner } from "../loop/learner.ts";
import type { Phase } from "../loop/phase.ts";
import type { TrainingData, TrainingRows } from "../loop/training-data.ts";
import { validationOn, type Validation } from "../loop/validation.ts";
import { decayStepsOf, phaseSteps, scheduleOf } from "./schedule.ts";
import type { TrainerOptions } from "./trainer-options.ts";
import type { TrainingConfig } from "./training-config.ts";
import { trainingAdvice, type TrainingSize } from "./training-memory.ts";
import type { TrainingMethod, TrainingSettings } from "./training-method.ts";

export interface PhaseParts<C extends TrainingConfig> {
  readonly method: TrainingMethod<C>;
  readonly options: TrainerOptions<C>;
  readonly settings: TrainingSettings;
  readonly data: TrainingData;
  /** Separate validation rows; null if there are none. */
  readonly validationData: TrainingData | null;
  /** Facts about the model that must be equal for an exact resume. */
  readonly exactModel: Readonly<Record<string, Json>>;
  readonly start: PhaseStart | undefined;
  readonly size: TrainingSize;
}

/**
 * Builds the phase that the training loop runs. The caller disposes its learner.
 *
 * @throws PeriodicEvalError `data` if the held-out share leaves no row to train on, `config` if warm-up and decay are longer
 *   than the phase.
 */
export function buildPhase<C extends TrainingConfig>(parts: PhaseParts<C>): Phase {
  const { method, options, settings, data, exactModel, start, size } = parts;
  const { config } = method;
  const { model, tokenizer, runDir, signal, session } = options;
  const { phase, seed, warn } = settings;
  const { batchSize, gradientAccumulation } = config;
  const { training, validation } = splitRows(parts);
  const plan = planData(training.lengths, { batchSize, gradientAccumulation, seed, phase });
  const maxSteps = phaseSteps(config, plan.stepsPerEpoch);
  // Before the learner exists: this may throw, and nobody would dispose the optimizer's tensors.
  const learningRate = scheduleOf(`${method.name} config`, config, maxSteps);
  return {
    name: phase,
    maxSteps,
    stepsPerEpoch: plan.stepsPerEpoch,
    config,
    signal: signal ?? null,
    clock: session?.clock ?? (() => performance.now() / 1000),
    warn,
    learner: new Learner({ model, config, phase, runDir, warn }),
    learningRate,
    validation,
    start,
    exact: (step) => ({
      ...exactConfig(config, maxSteps, step),
      data: data.hash,
      ...data.exact,
      tokenizer: tokenizer.fingerprint,
      ...exactModel,
    }),
    work: (step) => training.work(plan.microBatches(step), step),
    explain: (error, doing) =>
      memoryErrorOf(error, `phase "${phase}", ${doing}`, () => trainingAdvice(model, size)),
  };
}

/** Splits rows into training and validation: a held-out share, or separate validation rows, or none. */
function splitRows<C extends TrainingConfig>({
  method: { config },
  settings: { seed, phase },
  data,
  validationData,
}: PhaseParts<C>): { readonly training: TrainingRows; readonly validation: Validation | null } {
  const { validationShare, batchSize } = config;
  const validationOf = (rows: TrainingRows | null) => rows && validationOn(rows, batchSize);
  if (validationShare === null) return { training: data, validation: validationOf(validationData) };
  const part = data.packed?.only ?? ((rows: readonly number[]) => selectRows(data, rows));
  const share = holdOut(data.packed?.count ?? data.lengths.length, validationShare, { seed, phase });
  return { training: part(share.training), validation: validationOf(part(share.validation)) };
}

function selectRows({ lengths, work, heldOut }: TrainingRows, rows: readonly number[]): TrainingRows {
  const numbersOf = (batches: readonly (readonly number[])[]) =>
    batches.map((batch) => batch.map((number) => rows[number]!));
  return {
    lengths: rows.map((row) => lengths[row]!),
    work: (microBatches, step) => work(numbersOf(microBatches), step),
    heldOut: { hash: heldOut.hash, measure: (batches) => heldOut.measure(numbersOf(batches)) },
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
