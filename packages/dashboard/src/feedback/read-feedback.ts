import * as z from "zod";
import { join } from "node:path";
import { quoteValue, describeZodIssue } from "@periodic-eval/contracts/options";
import { PeriodicEvalError } from "@periodic-eval/core";
import { nodeFiles, readIfPresent, type FileReader } from "@periodic-eval/store";

/** One preference and its training so far. */
export interface FeedbackPreference {
  readonly name: string;
  readonly summary: FeedbackSummary["preferences"][string];
  readonly metadata: FeedbackMetadata;
  /** The measurement before the first update. */
  readonly baseline: FeedbackMeasurement;
  /** In order, beginning with step 0. */
  readonly steps: readonly FeedbackStep[];
}

/** The content of an output folder of training on feedback. */
export interface FeedbackRun {
  readonly output: string;
  readonly summary: FeedbackSummary;
  readonly preferences: readonly FeedbackPreference[];
}

/**
 * Reads the files of training on feedback (`docs/guides/feedback.md`), whether finished, running or interrupted. Skips an incomplete
 * last line.
 *
 * @throws PeriodicEvalError `store`, with the file and the field, if a file is missing or damaged.
 */
export async function readFeedback(output: string, fs: FileReader = nodeFiles): Promise<FeedbackRun> {
  const summary = await readJson(join(output, "summary.json"), summarySchema, fs);
  const preferences = await Promise.all(
    Object.entries(summary.preferences).map(async ([name, preference]): Promise<FeedbackPreference> => {
      const file = (of: string) => join(output, name, of);
      const { eval: baseline } = await readJson(file("baseline.json"), baselineSchema, fs);
      return {
        name,
        summary: preference,
        metadata: await readJson(file("metadata.json"), metadataSchema, fs),
        baseline,
        steps: await readSteps(file("steps.jsonl"), fs),
      };
    }),
  );
  return { output, summary, preferences };
}

async function readSteps(path: string, fs: FileReader): Promise<readonly FeedbackStep[]> {
  const text = (await readIfPresent(path, fs)) ?? "";
  const lines = text.split("\n").slice(0, -1);
  return lines.map((line, at) => {
    const where = `${path}:${at + 1}`;
    const step = parsedText(stepSchema, line, where);
    if (step.step !== at) throw damaged(`${where}: step`, String(step.step), String(at));
    return step;
  });
}

async function readJson<T>(path: string, schema: z.ZodType<T>, fs: FileReader): Promise<T> {
  const text = await readIfPresent(path, fs);
  if (text === null) throw damaged(path, "no such file", "a file of training on feedback");
  return parsedText(schema, text, path);
}

function parsedText<T>(schema: z.ZodType<T>, text: string, where: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw damaged(where, text.trim() === "" ? "an empty file" : "text that is not JSON", "JSON", cause);
  }
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const { path, value: got, expected } = describeZodIssue(error, value);
  const quoted = quoteValue(got);
  const field = path.length === 0 ? where : `${where}: ${path.join(".")}`;
  throw damaged(field, quoted.length > 80 ? `${quoted.slice(0, 79)}…` : quoted, expected, error);
}

const damaged = (where: string, got: string, expected: string, cause?: unknown): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "store",
    where,
    got,
    expected,
    fix: "Pass the output_dir of periodic-eval feedback. Restore damaged files, or move them away.",
    ...(cause !== undefined && { cause }),
  });

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

/** Fields of numbers by these names; null if unknown. */
const numbers = <const K extends string>(...names: readonly K[]) =>
  Object.fromEntries(names.map((name) => [name, numberOrNull])) as Record<K, typeof numberOrNull>;

/** One measurement of a model. Metrics that were not requested are null. */
const measurement = z.looseObject({
  /** In nats, over the preference's pairs. Deltas are relative to the baseline. */
  logprob_margin: z
    .looseObject({
      ...numbers("margin", "margin_per_token", "margin_delta", "margin_per_token_delta", "p"),
      n: count,
      reason: text.nullable(),
    })
    .nullable(),
  preference_compliance: z
    .looseObject({ ...numbers("held_out", "seen"), held_out_n: count, seen_n: count, ungraded: count })
    .nullable(),
  general: z.looseObject({ ...numbers("general", "coding", "instructions"), failures: reasons }).nullable(),
  collapse: z
    .looseObject({
      ...numbers("entropy_ratio", "self_rouge_l", "own_drift", "baseline_drift"),
      alerts: z.array(text, "a list"),
      unknown: reasons,
    })
    .nullable(),
  rollouts: z.array(rollout, "a list"),
});

const stepSchema = z.looseObject({
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

const baselineSchema = z.looseObject({ timestamp: text, eval: measurement });

const metadataSchema = z.looseObject({
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

const summarySchema = z.looseObject({
  schema_version: z.literal(1, "1"),
  updated_at: text,
  preferences: z
    .record(
      z.string(),
      z.object({
        ...numbers(
          "logprob_margin_delta",
          "logprob_margin_per_token_delta",
          "logprob_margin_p",
          "baseline_compliance",
          "final_compliance",
          "baseline_seen_compliance",
          "final_seen_compliance",
          "capability_ratio",
        ),
        lora_id: text,
        status: text,
        steps: count,
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
type FeedbackMetadata = z.infer<typeof metadataSchema>;
export type FeedbackSummary = z.infer<typeof summarySchema>;
