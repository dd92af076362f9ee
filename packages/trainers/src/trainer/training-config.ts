import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { checkKeys, quoteValue, describeZodIssue } from "@periodic-eval/core/internal";
import { z } from "zod";

/** Options that every trainer has. */
export const trainingFields = {
  /**
   * Passes over the data; 1 where `maxSteps` is not given either. A resume may change it, or `maxSteps`, where no step
   * depends on the length: `schedule: "constant"`, or `"wsd"` before its decay, without `warmupRatio`.
   */
  epochs: z.number().positive().nullable().default(null),
  /** Optimizer steps, in place of `epochs`. */
  maxSteps: z.int().positive().nullable().default(null),
  /** Rows of a forward and backward pass. */
  batchSize: z.int().positive().default(8),
  /** Passes that make one optimizer step. */
  gradientAccumulation: z.int().positive().default(1),
  /**
   * Keeps of each layer only what it reads, and runs it again in the backward pass: where memory asks for it, for a third
   * more time (on tfjs-node, where such steps go without graphs, for more of small models). Losses and gradients are the same,
   * on wasm to the bit.
   */
  activationCheckpointing: z.boolean().default(false),
  /** The highest, reached after warm-up. */
  learningRate: z.number().nonnegative().default(5e-5),
  schedule: z.enum(["constant", "linear", "cosine", "wsd"]).default("linear"),
  warmupSteps: z.int().nonnegative().nullable().default(null),
  /** Share of all steps, in place of `warmupSteps`; rounded up. */
  warmupRatio: z.number().min(0).max(1).nullable().default(null),
  /** Of `schedule: "wsd"`, which wants it: the last steps, over which the rate falls to 0. */
  decaySteps: z.int().nonnegative().nullable().default(null),
  /** Share of all steps, in place of `decaySteps`; rounded up. */
  decayRatio: z.number().min(0).max(1).nullable().default(null),
  /** How the rate of `wsd` falls. */
  decayType: z.enum(["linear", "cosine", "1-sqrt"]).default("cosine"),
  /** Gradients of a greater norm are scaled down to it; null never clips. */
  maxGradNorm: z.number().positive().nullable().default(1),
  weightDecay: z.number().nonnegative().default(0),
  /** Whether norms and biases decay too. */
  decay: z.enum(["all", "no-norms"]).default("no-norms"),
  adamBetas: z
    .tuple([z.number().min(0).lt(1), z.number().min(0).lt(1)], "expected a list of two numbers")
    .default([0.9, 0.999]),
  adamEpsilon: z.number().positive().default(1e-8),
  /** Of shuffling and dropout, and of all measuring. */
  seed: z.union([z.int(), z.string()]).default(42),
  /** Tokens of a row; null is what the model takes. */
  maxLength: z.int().min(2).nullable().default(null),
  /** What happens to a row that is too long, empty, without assistant turn or with broken roles. */
  onBadRow: z.enum(["drop", "truncate", "error"]).default("drop"),
  /** What a loss or gradient norm of NaN or Inf does: an error, or the update is left out and counted. */
  onNonFinite: z.enum(["error", "skip"]).default("error"),
  /** Updates left out one after the other that are an error all the same; null never is. */
  maxSkippedInARow: z.int().positive().nullable().default(10),
  /**
   * Share of the rows that is held out of training to validate on, drawn by seed and phase; at least one row. Whole rows of
   * the dataset, also where they are packed.
   */
  validationShare: z.number().gt(0).lt(1).nullable().default(null),
  /** Held-out rows are validated on every so many steps and at the end; null is at the end of each epoch. */
  evalSteps: z.int().positive().nullable().default(null),
  /** A checkpoint every so many steps; null is one at the end. */
  saveSteps: z.int().positive().nullable().default(null),
  /**
   * The metric of validation whose best checkpoint is written at once and stays, ties to the earlier; null is none. The
   * lower is better of `…loss` and `…perplexity`, the higher of all others, as transformers takes it.
   */
  keepBest: z.string().min(1).nullable().default("eval_loss"),
  /** How many of the newest checkpoints stay, beside the best. */
  keepCheckpoints: z.int().positive().default(2),
  /**
   * Keeps what was measured at each firing, to measure it again (`periodic-eval replay`): the adapter of a model that has
   * one, else all weights, in `<runDir>/saved/<phase>/step_<N>`. Snapshots name the folder, relative to `runDir`.
   */
  saveAdapterAtFiring: z.boolean().default(false),
  /** Metrics go to callbacks and loggers at the first step, the last, and every so many. */
  logSteps: z.int().positive().default(1),
};

export type TrainingConfig = z.infer<z.ZodObject<typeof trainingFields>>;

/**
 * The configuration with its defaults. Throws a `config` error that names the option, and for an unknown one the nearest.
 *
 * @param name how errors call it: `SFT config`
 */
export function parseTrainingConfig<C extends TrainingConfig>(
  name: string,
  schema: z.ZodType<C> & { readonly shape: object },
  given: object = {},
): C {
  const parsed = parseConfig(name, schema, given);
  refuseBoth(name, parsed, "epochs", "maxSteps");
  refuseBoth(name, parsed, "warmupSteps", "warmupRatio");
  refuseBoth(name, parsed, "decaySteps", "decayRatio");
  checkDecay(name, parsed);
  return parsed;
}

/** Likewise, of options that are looked at one by one. */
export function parseConfig<C>(
  name: string,
  schema: z.ZodType<C> & { readonly shape: object },
  given: object,
): C {
  checkKeys(name, given, Object.keys(schema.shape));
  const parsed = schema.safeParse(given);
  if (!parsed.success) throw errorOf(name, parsed.error, given);
  return parsed.data;
}

function errorOf(name: string, error: z.ZodError, given: unknown): PeriodicEvalError {
  const { path, value, expected } = describeZodIssue(error, given);
  return new PeriodicEvalError({
    code: "config",
    where: `${name} ${path.join(".")}`,
    got: quoteValue(value),
    expected,
    fix: "Correct the option, or leave it out for its default.",
  });
}

function refuseBoth(
  name: string,
  config: TrainingConfig,
  one: keyof TrainingConfig,
  other: keyof TrainingConfig,
): void {
  if (config[one] === null || config[other] === null) return;
  throw new PeriodicEvalError({
    code: "config",
    where: `${name} ${one}, ${other}`,
    got: `${one} ${String(config[one])} and ${other} ${String(config[other])}`,
    expected: "one of the two",
    fix: `Leave ${one} or ${other} out.`,
  });
}

/** How long a decay is nobody can guess; of another schedule it would be silently without effect. */
function checkDecay(name: string, { schedule, decaySteps, decayRatio }: TrainingConfig): void {
  const isGiven = decaySteps !== null || decayRatio !== null;
  if (isGiven === (schedule === "wsd")) return;
  throw new PeriodicEvalError({
    code: "config",
    where: `${name} ${decaySteps === null ? "decayRatio" : "decaySteps"}`,
    got: isGiven ? `${decaySteps ?? decayRatio} with schedule "${schedule}"` : 'null with schedule "wsd"',
    expected: isGiven ? 'schedule: "wsd", which has a decay' : "the length of the decay",
    fix: isGiven ? "Leave it out." : "Give decaySteps, or decayRatio: 0.1 for the last tenth.",
  });
}

/** Options that may change between a checkpoint and its resume: by themselves they change neither data nor arithmetic of a step. */
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

/** Options that change nothing of a `wsd` before its decay has begun. */
const ofDecay = ["decaySteps", "decayRatio", "decayType"] as const;

/**
 * What must be the same for a resume to be exact. The length of the phase is part of it where learning rates depend on it:
 * those of `wsd` do from the decay on, and a training that was stopped before it can be made longer.
 *
 * @param maxSteps optimizer steps of the phase, as `epochs` or `maxSteps` give them
 * @param step completed ones
 */
export function exactPart(
  config: TrainingConfig,
  maxSteps: number,
  step: number,
): Readonly<Record<string, Json>> {
  const { schedule, warmupRatio } = config;
  const isStable = schedule === "wsd" && step <= maxSteps - decayStepsOf(config, maxSteps);
  const free: readonly string[] = isStable ? [...mayChange, ...ofDecay] : mayChange;
  // What is off changes nothing, and is not said.
  const isOff = (name: string) => name === "activationCheckpointing" && !config.activationCheckpointing;
  const lasting = Object.entries(config).filter(([name]) => !free.includes(name) && !isOff(name));
  const dependsOnLength = (schedule !== "constant" && !isStable) || (warmupRatio ?? 0) > 0;
  return { ...Object.fromEntries(lasting), ...(dependsOnLength && { maxSteps }) };
}

/** Optimizer steps of a phase. */
export const phaseSteps = ({ maxSteps, epochs }: TrainingConfig, stepsPerEpoch: number): number =>
  maxSteps ?? Math.ceil((epochs ?? 1) * stepsPerEpoch);

/** Steps over which `wsd` falls. */
export const decayStepsOf = ({ decaySteps, decayRatio }: TrainingConfig, maxSteps: number): number =>
  decaySteps ?? Math.ceil((decayRatio ?? 0) * maxSteps);
