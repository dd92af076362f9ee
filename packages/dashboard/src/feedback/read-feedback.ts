import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { quoteValue, describeZodIssue } from "@periodic-eval/contracts/options";
import { nodeFiles, readIfPresent, type FileReader } from "@periodic-eval/store";
import type * as z from "zod";
import {
  baselineSchema,
  metadataSchema,
  stepSchema,
  summarySchema,
  type FeedbackMeasurement,
  type FeedbackMetadata,
  type FeedbackStep,
  type FeedbackSummary,
} from "./feedback-files.ts";

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
    Object.entries(summary.preferences).map(async ([name, one]): Promise<FeedbackPreference> => {
      const file = (of: string) => join(output, name, of);
      const { eval: baseline } = await readJson(file("baseline.json"), baselineSchema, fs);
      return {
        name,
        summary: one,
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
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, value: got, expected } = describeZodIssue(result.error, value);
  const quoted = quoteValue(got);
  throw damaged(
    path.length === 0 ? where : `${where}: ${path.join(".")}`,
    quoted.length > 80 ? `${quoted.slice(0, 79)}…` : quoted,
    expected,
    result.error,
  );
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
