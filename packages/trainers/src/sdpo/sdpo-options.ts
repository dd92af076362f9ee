import type { Json, Logger, SessionState, Tokenizer } from "@periodic-eval/core";
import type { TrainableLM } from "@periodic-eval/tfjs";
import * as z from "zod";
import type { ModelConfigs } from "../trainer/model-identity.ts";
import { objectsSchema, uncheckedField } from "../trainer/trainer-options.ts";
import type { SDPOConfig } from "./sdpo-config.ts";

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
