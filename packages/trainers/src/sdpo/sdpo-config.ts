import * as z from "zod";
import { configError, numberToOne, parseOptions, positiveInteger } from "@periodic-eval/contracts/options";
import type { Json, Logger, SessionState, Tokenizer } from "@periodic-eval/core";
import type { TrainableLM } from "@periodic-eval/tfjs";
import type { ModelConfigs } from "../trainer/model-identity.ts";
import { objectsSchema, uncheckedField } from "../trainer/trainer-options.ts";
import { trainingFields } from "../trainer/training-config.ts";

const { maxGradNorm, weightDecay, decay, adamBetas, adamEpsilon, seed, keepCheckpoints } = trainingFields;

const sdpoConfigSchema = z.strictObject({
  /** Learning rate of every update. There is no schedule, because the number of updates is unknown. */
  learningRate: z.number().nonnegative().default(3e-5),
  /** The teacher's share of the mixture, in (0, 1]; 1 is KL(student ‖ teacher) on the drawn tokens only. */
  alpha: numberToOne("a number in (0, 1]").default(0.5),
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

export interface SDPOTrainerOptions {
  /** Trained in place: a model with an adapter for `teacher: "base"`, any model for `"current"`. */
  readonly model: TrainableLM & ModelConfigs;
  readonly tokenizer: Tokenizer;
  readonly config?: Partial<SDPOConfig>;
  /** Receives checkpoints in `<runDir>/checkpoints/<phase>/step_<updates>`. Only `save` and `resume` require it. */
  readonly runDir?: string;
  /** Default `sdpo`. */
  readonly phase?: string;
  /** Receive warnings of `resume` about damaged checkpoints. */
  readonly loggers?: readonly Logger[];
}

export const sdpoOptionsSchema = z.strictObject({
  model: uncheckedField,
  tokenizer: uncheckedField,
  config: uncheckedField,
  runDir: uncheckedField,
  phase: uncheckedField,
  loggers: objectsSchema<Logger>("loggers").optional(),
} satisfies Record<keyof SDPOTrainerOptions, z.ZodType>);

/** Metrics of one gradient step, before its update; means over all response tokens of the batch. */
export interface SDPOMetrics {
  readonly loss: number;
  /** Norm of the mean loss's gradients, before clipping. */
  readonly grad_norm: number;
  /** Divergence of student and teacher, times the importance ratio. */
  readonly distill_loss: number;
  /** Estimated KL to the base, in nats, before its weight; null for a model without a base. */
  readonly kl_reg: number | null;
  /** After clipping: at most `isClip`. */
  readonly mean_is_ratio: number;
  /** Share of tokens whose ratio exceeded `isClip`. */
  readonly clip_fraction: number;
  /** The student's log p of the drawn tokens, in nats. */
  readonly student_log_prob: number;
  readonly teacher_log_prob: number;
}

export interface SDPOUpdate {
  /** Completed updates, this one included. */
  readonly update: number;
  /** Response tokens. */
  readonly tokens: number;
  /** Metrics of each gradient step, in order. */
  readonly steps: readonly SDPOMetrics[];
  /** Metrics of the last gradient step. */
  readonly metrics: SDPOMetrics;
}

export interface SDPOSaveOptions {
  /** The result of `Session.save`, if the updates are reported to a session. */
  readonly session?: SessionState;
  /** Updates of the whole training; null (the default) if unknown. */
  readonly maxUpdates?: number | null;
  /** Returned by `resume` in the checkpoint's state. */
  readonly note?: Json;
}

export const sdpoSaveSchema = z.strictObject({
  session: uncheckedField,
  maxUpdates: z
    .int("a positive integer or null")
    .positive("a positive integer or null")
    .nullable()
    .meta({ fix: "Leave it out if the number of updates is unknown." })
    .optional(),
  note: uncheckedField,
} satisfies Record<keyof SDPOSaveOptions, z.ZodType>);
