import type { Json, Message, Row } from "@periodic-eval/core";
import type { VerifierSpec } from "./verifiers/verifier-spec.ts";

/** `val` is looked at while training goes on, `test` once, after it. */
export const splits = ["val", "test"] as const;
export type Split = (typeof splits)[number];

/** One line of `tasks.jsonl`, with what `metadata.yaml` says where the line says nothing. */
export interface BenchmarkTask extends Row {
  /** Ends with the user's; a system message can only be the first. */
  readonly messages: readonly Message[];
  readonly split: Split;
  readonly verifier: VerifierSpec;
  /** What the verifier compares with; null where it needs none. */
  readonly answer: Json;
  readonly metadata: { readonly [key: string]: Json };
}

/** One completion of a task. */
export interface BenchmarkCompletion {
  readonly text: string;
  /** What is checked: the text, or what follows its thinking; null where the thinking did not end. */
  readonly answer: string | null;
  /** `length`: it was cut off at `maxTokens`, or the model's window. */
  readonly finish: "stop" | "length";
  /** As the server counts them, else as the tokenizer does; null where neither tells. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** A task and what the model said, before it is checked. */
export interface AnsweredTaskRow extends Row {
  /** As it was asked, the user's template applied; the system prompt of the chat template is in the provenance. */
  readonly prompt: readonly Message[];
  readonly answer: Json;
  readonly verifier: VerifierSpec;
  readonly metadata: { readonly [key: string]: Json };
  /** `numSamples` of them. */
  readonly completions: readonly BenchmarkCompletion[];
}

export interface BenchmarkVerdict {
  /** `unfinished`: the thinking did not end, which counts as a reward of 0. All but it and `graded` carry no reward. */
  readonly status: "graded" | "unfinished" | "refusal" | "code" | "unparsed" | "error";
  /** Why it did not pass, what a judge said, or what the verifier threw; null where nothing is said. */
  readonly raw: string | null;
}

/** One task with its completions and what became of each, in the order of `completions`. */
export interface BenchmarkRow extends AnsweredTaskRow {
  /** Null where the verifier failed: unknown, not 0. */
  readonly rewards: readonly (number | null)[];
  readonly passed: readonly (boolean | null)[];
  readonly verdicts: readonly BenchmarkVerdict[];
}
