import { configError, parseOptions, positiveInteger } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { trainingFields } from "../trainer/training-config.ts";

const { maxGradNorm, weightDecay, decay, adamBetas, adamEpsilon, seed, keepCheckpoints } = trainingFields;

const sdpoConfigSchema = z.strictObject({
  /** Learning rate of every update. There is no schedule, because the number of updates is unknown. */
  learningRate: z.number().nonnegative().default(3e-5),
  /** The teacher's share of the mixture, in (0, 1]; 1 is KL(student ‖ teacher) on the drawn tokens only. */
  alpha: z.number().gt(0).max(1).default(0.5),
  /** Maximum importance ratio. */
  isClip: z.number().positive().default(5),
  /** Weight of the KL to the model without its adapter. */
  klRegWeight: z.number().nonnegative().default(0),
  /** `k3`: an unbiased estimate of KL(student ‖ base) on drawn tokens. `claas`: with the log-ratio negated, as in kfallah/CLaaS. */
  klForm: z.enum(["k3", "claas"]).default("k3"),
  /** How many of the teacher's most likely tokens the divergence covers; at most the vocabulary. */
  teacherTopK: positiveInteger.default(100),
  /** The model that reads the feedback: the model without its adapter, or the current model at each gradient step. */
  teacher: z.enum(["base", "current"]).default("base"),
  /** The last user turn as the teacher reads it. `{prompt}` is its original content. */
  hindsight: z
    .string()
    .refine(
      (text) => /\{prompt\}/.test(text) && /\{feedback\}/.test(text),
      "a string with {prompt} and {feedback}",
    )
    .default(
      "{prompt}\n\nFeedback on an earlier answer to this: {feedback}\nAnswer again, and follow the feedback.",
    ),
  /** Gradient steps per batch. */
  stepsPerBatch: positiveInteger.default(4),
  /** Examples per forward and backward pass; a larger batch accumulates gradients. */
  microBatchSize: positiveInteger.default(4),
  /** Trains without dropout, so that importance ratios are 1 before the first gradient step. */
  disableDropout: z.boolean().default(true),
  maxGradNorm,
  weightDecay,
  decay,
  adamBetas,
  adamEpsilon,
  seed,
  keepCheckpoints,
});

export type SDPOConfig = z.infer<typeof sdpoConfigSchema>;

/**
 * Returns the configuration with its defaults.
 *
 * @throws PeriodicEvalError `config` with the path of the wrong option.
 */
export const parseSDPOConfig = (given: Partial<SDPOConfig> = {}): SDPOConfig =>
  parseOptions("SDPO config", sdpoConfigSchema, given);

/** @throws PeriodicEvalError `config` for an option that requires a base, if the model has none. */
export function checkBase({ teacher, klRegWeight }: SDPOConfig, hasBase: boolean): void {
  if (hasBase) return;
  const common = { where: "SDPO config", expected: "a model with a base" };
  if (teacher === "base")
    throw configError({
      ...common,
      path: ["teacher"],
      got: '"base" for a model without an adapter',
      fix: 'Train an adapter (withLora), or set teacher: "current".',
    });
  if (klRegWeight > 0)
    throw configError({
      ...common,
      path: ["klRegWeight"],
      got: `${klRegWeight} for a model without an adapter`,
      fix: "Train an adapter (withLora), or remove it.",
    });
}
