import { checkKeys, PeriodicEvalError, shown, type Json } from "@periodic-eval/core";
import { z } from "zod";

/** Options that every trainer has. */
export const trainingFields = {
  /**
   * Passes over the data; 1 where `maxSteps` is not given either. A resume may change it, or `maxSteps`, where no step
   * depends on the length: `schedule: "constant"` without `warmupRatio`.
   */
  epochs: z.number().positive().nullable().default(null),
  /** Optimizer steps, in place of `epochs`. */
  maxSteps: z.int().positive().nullable().default(null),
  /** Rows of a forward and backward pass. */
  batchSize: z.int().positive().default(8),
  /** Passes that make one optimizer step. */
  gradientAccumulation: z.int().positive().default(1),
  /** The highest, reached after warm-up. */
  learningRate: z.number().nonnegative().default(5e-5),
  schedule: z.enum(["constant", "linear", "cosine"]).default("linear"),
  warmupSteps: z.int().nonnegative().nullable().default(null),
  /** Share of all steps, in place of `warmupSteps`; rounded up. */
  warmupRatio: z.number().min(0).max(1).nullable().default(null),
  /** Gradients of a greater norm are scaled down to it; null never clips. */
  maxGradNorm: z.number().positive().nullable().default(1),
  weightDecay: z.number().nonnegative().default(0),
  /** Whether norms and biases decay too. */
  decay: z.enum(["all", "no-norms"]).default("no-norms"),
  adamBetas: z.tuple([z.number().min(0).lt(1), z.number().min(0).lt(1)]).default([0.9, 0.999]),
  adamEpsilon: z.number().positive().default(1e-8),
  /** Of shuffling and dropout, and of all measuring. */
  seed: z.union([z.int(), z.string()]).default(42),
  /** Tokens of a row; null is what the model takes. */
  maxLength: z.int().min(2).nullable().default(null),
  /** What happens to a row that is too long, empty, without assistant turn or with broken roles. */
  onBadRow: z.enum(["drop", "truncate", "error"]).default("drop"),
  /** What a loss or gradient norm of NaN or Inf does: an error, or the update is left out and counted. */
  onNonFinite: z.enum(["error", "skip"]).default("error"),
  /** A checkpoint every so many steps; null is one at the end. */
  saveSteps: z.int().positive().nullable().default(null),
  /** How many of the newest checkpoints stay. */
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
  checkKeys(name, given, Object.keys(schema.shape));
  const parsed = schema.safeParse(given);
  if (!parsed.success) throw errorOf(name, parsed.error.issues[0]!, given);
  refuseBoth(name, parsed.data, "epochs", "maxSteps");
  refuseBoth(name, parsed.data, "warmupSteps", "warmupRatio");
  return parsed.data;
}

function errorOf(name: string, issue: z.core.$ZodIssue, given: unknown): PeriodicEvalError {
  const value = issue.path.reduce<unknown>(
    (at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key],
    given,
  );
  return new PeriodicEvalError({
    code: "config",
    where: `${name} ${issue.path.map(String).join(".")}`,
    got: shown(value),
    expected: wanted(issue),
    fix: "Correct the option, or leave it out for its default.",
  });
}

const typeWords: Readonly<Record<string, string>> = {
  int: "a whole number",
  number: "a finite number",
  boolean: "true or false",
  string: "a text",
};

/** What an issue asks for, in words. */
function wanted(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return typeWords[issue.expected] ?? issue.expected;
    case "too_small":
      return `a number ${issue.inclusive ? `of ${issue.minimum} or more` : `above ${issue.minimum}`}`;
    case "too_big":
      return `a number ${issue.inclusive ? `of ${issue.maximum} or less` : `below ${issue.maximum}`}`;
    case "invalid_value":
      return issue.values.map((value) => JSON.stringify(value)).join(" or ");
    default:
      return issue.message;
  }
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

/** Options that may change between a checkpoint and its resume: by themselves they change neither data nor arithmetic of a step. */
const mayChange = [
  "epochs",
  "maxSteps",
  "saveSteps",
  "keepCheckpoints",
  "saveAdapterAtFiring",
  "logSteps",
  "onBadRow",
  "onNonFinite",
] as const;

/**
 * What must be the same for a resume to be exact. The length of the phase is part of it where learning rates depend on it.
 *
 * @param maxSteps optimizer steps of the phase, as `epochs` or `maxSteps` give them
 */
export function exactPart(config: TrainingConfig, maxSteps: number): Readonly<Record<string, Json>> {
  const lasting = Object.entries(config).filter(([name]) => !(mayChange as readonly string[]).includes(name));
  const dependsOnLength = config.schedule !== "constant" || (config.warmupRatio ?? 0) > 0;
  return { ...Object.fromEntries(lasting), ...(dependsOnLength && { maxSteps }) };
}
