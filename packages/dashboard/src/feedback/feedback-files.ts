import * as z from "zod";

const text = z.string("a string");
const number = z.number("a number");
const numberOrNull = z.number("a number, or null if unknown").nullable();
const count = z.int("an integer").nonnegative("0 or more");
const reasons = z.record(z.string(), text);

const rollout = z.looseObject({
  of: text,
  prompt: text,
  response: text,
  /** From 0 to 1; null if it was not graded. */
  score: numberOrNull,
});

/** One measurement of a model. Metrics that were not requested are null. */
const measurement = z.looseObject({
  /** In nats, over the preference's pairs. Deltas are relative to the baseline. */
  logprob_margin: z
    .looseObject({
      margin: numberOrNull,
      margin_per_token: numberOrNull,
      margin_delta: numberOrNull,
      margin_per_token_delta: numberOrNull,
      p: numberOrNull,
      n: count,
      reason: text.nullable(),
    })
    .nullable(),
  preference_compliance: z
    .looseObject({
      held_out: numberOrNull,
      held_out_n: count,
      seen: numberOrNull,
      seen_n: count,
      ungraded: count,
    })
    .nullable(),
  general: z
    .looseObject({
      general: numberOrNull,
      coding: numberOrNull,
      instructions: numberOrNull,
      failures: reasons,
    })
    .nullable(),
  collapse: z
    .looseObject({
      entropy_ratio: numberOrNull,
      self_rouge_l: numberOrNull,
      own_drift: numberOrNull,
      baseline_drift: numberOrNull,
      alerts: z.array(text, "a list"),
      unknown: reasons,
    })
    .nullable(),
  rollouts: z.array(rollout, "a list"),
});

export const stepSchema = z.looseObject({
  /** 0-based. */
  step: count,
  timestamp: text,
  feedback_given: text,
  sdpo_metrics: z.record(z.string(), z.union([z.number(), z.string()]).nullable()),
  eval: measurement,
  prompt_used: text,
  response_text: text,
  timing_s: number,
  sub_step_count: count.nullable(),
  /** The reason for each value that is not known; absent if there is none. */
  unknown: reasons.optional(),
});

export const baselineSchema = z.looseObject({ timestamp: text, eval: measurement });

export const metadataSchema = z.looseObject({
  schema_version: z.literal(1, "1"),
  started_at: text,
  config: z.looseObject({
    base_model: text.nullable(),
    num_steps: count,
    batch_size: count,
    steps_per_batch: count,
    metrics: z.array(text, "a list"),
    collapse_steps: z.array(count, "a list"),
    seed: number,
    training: z.looseObject({ learning_rate: number }),
  }),
  preference_definition: z.looseObject({ feedback_string: text }),
  /** The questions of `general`; absent for the coding task and the instructions. */
  general_questions: z.array(z.unknown(), "a list").optional(),
  grader: z.looseObject({ name: text }),
  /** Values beyond these raise an alert. */
  collapse_thresholds: z.looseObject({ entropy_ratio: number, self_rouge_l: number, drift_nats: number }),
  engine: z.json(),
});

/** Whether a preference's name can be the name of its folder. */
const isFolderName = (name: string): boolean => /^(?!\.{1,2}$)[^/\\\0]+$/.test(name);

export const summarySchema = z.looseObject({
  schema_version: z.literal(1, "1"),
  updated_at: text,
  preferences: z
    .record(
      z.string(),
      z.object({
        lora_id: text,
        status: text,
        steps: count,
        logprob_margin_delta: numberOrNull,
        logprob_margin_per_token_delta: numberOrNull,
        logprob_margin_p: numberOrNull,
        baseline_compliance: numberOrNull,
        final_compliance: numberOrNull,
        baseline_seen_compliance: numberOrNull,
        final_seen_compliance: numberOrNull,
        capability_ratio: numberOrNull,
        /** Null: no sign was measured after a step. */
        collapse_alerts: z.array(text, "a list").readonly().nullable(),
        verdict: text,
        updates: count.nullable().optional(),
        unknown: reasons.optional(),
      }),
    )
    .refine((all) => Object.keys(all).every(isFolderName), "names that can be names of folders"),
});

export type CollapseThresholds = FeedbackMetadata["collapse_thresholds"];
export type FeedbackMeasurement = z.infer<typeof measurement>;
export type FeedbackStep = z.infer<typeof stepSchema>;
export type FeedbackMetadata = z.infer<typeof metadataSchema>;
export type FeedbackSummary = z.infer<typeof summarySchema>;
