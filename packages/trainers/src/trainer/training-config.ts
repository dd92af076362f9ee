import {
  configError,
  parseOptions,
  positiveInteger,
  integerFromZero,
} from "@periodic-eval/contracts/options";
import * as z from "zod";
import { beta } from "../optimizer/adamw.ts";
import { learningRates, type LearningRate } from "../optimizer/learning-rate.ts";

/** Options that the configurations of SFT and DPO share. */
export const trainingFields = {
  epochs: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe(
      'Passes over the data; 1 if `maxSteps` is null too. A resume may increase `epochs` or `maxSteps`. Where learning rates depend on the length of the phase, the remaining steps use those of the longer phase, with a warning. A resume may shorten the phase only with `schedule: "constant"`, or `"wsd"` before its decay, without `warmupRatio`.',
    ),
  maxSteps: positiveInteger.nullable().default(null).describe("Optimizer steps; an alternative to `epochs`."),
  batchSize: positiveInteger.default(8).describe("Rows per forward and backward pass."),
  gradientAccumulation: positiveInteger.default(1).describe("Passes per optimizer step."),
  activationCheckpointing: z
    .boolean()
    .default(false)
    .describe(
      "Stores only the inputs of each layer and recomputes the rest in the backward pass: saves memory for about a fifth more time on wasm (up to three times as much on tfjs-node, where such steps run without graphs). Losses and gradients do not change; on wasm they are bit-identical.",
    ),
  learningRate: z.number().nonnegative().default(5e-5).describe("Peak learning rate, reached after warm-up."),
  schedule: z
    .enum(["constant", "linear", "cosine", "wsd"])
    .default("linear")
    .describe(
      "How the learning rate falls after warm-up: not at all, linearly, by a cosine, or at the end only (wsd).",
    ),
  warmupSteps: integerFromZero
    .nullable()
    .default(null)
    .describe("Steps over which the learning rate rises from 0."),
  warmupRatio: z
    .number()
    .min(0)
    .max(1)
    .nullable()
    .default(null)
    .describe("Share of all steps, rounded up; an alternative to `warmupSteps`."),
  decaySteps: integerFromZero
    .nullable()
    .default(null)
    .describe(
      'The last steps, over which the rate falls to 0. Only for `schedule: "wsd"`, which requires it or `decayRatio`.',
    ),
  decayRatio: z
    .number()
    .min(0)
    .max(1)
    .nullable()
    .default(null)
    .describe("Share of all steps, rounded up; an alternative to `decaySteps`."),
  decayType: z
    .enum(["linear", "cosine", "1-sqrt"])
    .default("cosine")
    .describe('Shape of the decay of `schedule: "wsd"`.'),
  maxGradNorm: z
    .number()
    .positive()
    .nullable()
    .default(1)
    .describe("Gradients with a larger norm are scaled down to it; null disables clipping."),
  weightDecay: z.number().nonnegative().default(0).describe("Weight decay of AdamW."),
  decay: z
    .enum(["all", "no-norms"])
    .default("no-norms")
    .describe("Which weights decay: `all`, or `no-norms`, all but norms and biases."),
  adamBetas: z
    .tuple([beta, beta], "an array of two numbers")
    .default([0.9, 0.999])
    .describe("Decay rates of the moments of AdamW."),
  adamEpsilon: z.number().positive().default(1e-8).describe("Added to the denominator of AdamW."),
  seed: z.union([z.int(), z.string()]).default(42).describe("Seeds shuffling, dropout and all measurements."),
  maxLength: z
    .int("an integer of 2 or more")
    .min(2, "an integer of 2 or more")
    .nullable()
    .default(null)
    .describe("Maximum tokens per row; null is the model's context length."),
  onBadRow: z
    .enum(["drop", "truncate", "error"])
    .default("drop")
    .describe("Handling of a row that is too long or empty, has no assistant turn, or has broken roles."),
  onNonFinite: z
    .enum(["error", "skip"])
    .default("error")
    .describe(
      "Handling of a loss or gradient norm of NaN or Inf: throw an error, or skip the update and count it.",
    ),
  maxSkippedInARow: positiveInteger
    .nullable()
    .default(10)
    .describe(
      'With `onNonFinite: "skip"`, more consecutive skipped updates are an error; null allows any number.',
    ),
  validationShare: z
    .number()
    .gt(0)
    .lt(1)
    .nullable()
    .default(null)
    .describe(
      "Share of the rows that is held out for validation, at least one row, drawn from seed and phase. Packing happens after this split.",
    ),
  evalSteps: positiveInteger
    .nullable()
    .default(null)
    .describe("Validates every `evalSteps` steps and at the end; null validates at the end of each epoch."),
  saveSteps: positiveInteger
    .nullable()
    .default(null)
    .describe("Writes a checkpoint every `saveSteps` steps and at the end; null writes one at the end."),
  keepBest: z
    .string()
    .min(1)
    .nullable()
    .default("eval_loss")
    .describe(
      "The validation metric whose best checkpoint is written immediately and kept; null keeps none. Ties go to the earlier step. Lower is better for `…loss` and `…perplexity`, higher for all others, as in transformers.",
    ),
  keepCheckpoints: positiveInteger
    .default(2)
    .describe("How many of the newest checkpoints are kept, in addition to the best and the last clean one."),
  restore: z
    .enum(["last_clean"])
    .nullable()
    .default(null)
    .describe(
      "last_clean: if a condition of `stopWhen` ends training, the model gets the weights of the newest checkpoint before the harm; one is written before step 1 too. The model is then written to `<runDir>/restored/<phase>`. Null: it keeps the last weights.",
    ),
  saveAdapterAtFiring: z
    .boolean()
    .default(false)
    .describe(
      "Saves the measured weights at each measurement, so that `periodic-eval verify` can repeat it: the adapter if the model has one, else all weights, in `<runDir>/saved/<phase>/step_<N>`. Snapshots name the folder, relative to `runDir`.",
    ),
  logSteps: positiveInteger
    .default(1)
    .describe(
      "Sends metrics to callbacks and loggers at the first step, the last, and every `logSteps` steps.",
    ),
};

export type TrainingConfig = z.infer<z.ZodObject<typeof trainingFields>>;

/**
 * Returns the configuration with its defaults.
 *
 * @param where Names the configuration in errors: `SFT config`.
 * @throws PeriodicEvalError `config` with the path of the wrong option.
 */
export function parseTrainingConfig<C extends TrainingConfig>(
  where: string,
  schema: z.ZodType<C>,
  options: object,
): C {
  const parsed = parseOptions(where, schema, options);
  checkOnlyOne(where, parsed, "epochs", "maxSteps");
  checkOnlyOne(where, parsed, "warmupSteps", "warmupRatio");
  checkOnlyOne(where, parsed, "decaySteps", "decayRatio");
  checkDecay(where, parsed);
  return parsed;
}

/** Returns the error for an option that excludes another. */
export const oneOfTwo = (where: string, path: readonly string[], got: string, which = "one of them") =>
  configError({ where, path, got, expected: "one of the two", fix: `Remove ${which}.` });

function checkOnlyOne(
  where: string,
  config: TrainingConfig,
  first: keyof TrainingConfig,
  second: keyof TrainingConfig,
): void {
  if (config[first] === null || config[second] === null) return;
  const got = `${first} ${String(config[first])} and ${second} ${String(config[second])}`;
  throw oneOfTwo(where, [first], got, `${first} or ${second}`);
}

/** `wsd` has no sensible default for the length of its decay; the other schedules would silently ignore it. */
function checkDecay(where: string, { schedule, decaySteps, decayRatio }: TrainingConfig): void {
  const isGiven = decaySteps !== null || decayRatio !== null;
  if (isGiven === (schedule === "wsd")) return;
  if (!isGiven)
    throw configError({
      where,
      path: ["schedule"],
      got: '"wsd" without decaySteps or decayRatio',
      expected: "the length of the decay",
      fix: "Set decaySteps, or decayRatio: 0.1 for the last tenth.",
    });
  throw configError({
    where,
    path: [decaySteps === null ? "decayRatio" : "decaySteps"],
    got: `${decaySteps ?? decayRatio} with schedule "${schedule}"`,
    expected: 'schedule: "wsd", which has a decay',
    fix: 'Remove it, or set schedule: "wsd".',
  });
}

/** Returns the optimizer steps of a phase. */
export const phaseSteps = ({ maxSteps, epochs }: TrainingConfig, stepsPerEpoch: number): number =>
  maxSteps ?? Math.ceil((epochs ?? 1) * stepsPerEpoch);

/** Returns the steps over which `wsd` falls to 0. */
export const decayStepsOf = ({ decaySteps, decayRatio }: TrainingConfig, maxSteps: number): number =>
  decaySteps ?? Math.ceil((decayRatio ?? 0) * maxSteps);

/**
 * Returns the learning rates of a configuration.
 *
 * @param where Names the configuration in errors: `SFT config`.
 * @param maxSteps Optimizer steps of the phase.
 * @throws PeriodicEvalError `config` if warm-up and decay are longer than the phase.
 */
export function scheduleOf(where: string, config: TrainingConfig, maxSteps: number): LearningRate {
  const { learningRate: peak, schedule, decayType } = config;
  const warmupSteps = config.warmupSteps ?? Math.ceil((config.warmupRatio ?? 0) * maxSteps);
  const decaySteps = decayStepsOf(config, maxSteps);
  if (warmupSteps > maxSteps || (schedule === "wsd" && warmupSteps + decaySteps > maxSteps)) {
    const decay = schedule === "wsd" ? ` and ${decaySteps} of decay` : "";
    throw configError({
      where,
      path: [schedule === "wsd" ? "schedule" : "warmupSteps"],
      got: `${warmupSteps} steps of warm-up${decay}`,
      expected: `at most the ${maxSteps} steps of the phase`,
      fix: `Shorten warm-up${schedule === "wsd" ? " or decay" : ""}, or train for more steps.`,
    });
  }
  return learningRates[schedule]({ peak, maxSteps, warmupSteps, decaySteps, decayType });
}
