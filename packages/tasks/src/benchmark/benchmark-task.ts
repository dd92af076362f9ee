import type { Json, Message, Row } from "@periodic-eval/core";
import type { VerifierSpec } from "./verifiers/verifier-spec.ts";

/** `val` is measured during training, `test` once after it. */
export const splits = ["val", "test"] as const;
export type Split = (typeof splits)[number];

/** One line of `tasks.jsonl`, with the defaults of `metadata.yaml`. */
export interface BenchmarkTask extends Row {
  /** The last message is the user's; only the first may be a system message. */
  readonly messages: readonly Message[];
  readonly split: Split;
  readonly verifier: VerifierSpec;
  /** The verifier's reference; null if it needs none. */
  readonly answer: Json;
  readonly metadata: { readonly [key: string]: Json };
}

/** One completion of a task. */
export interface BenchmarkCompletion {
  readonly text: string;
  /** The checked part: the text without its thinking; null if the thinking did not end. */
  readonly answer: string | null;
  /** Token ids; null if the engine does not report them. */
  readonly ids: readonly number[] | null;
  /** `length`: the completion was cut off at `maxTokens` or the model's context length. Null if an `engine` does not say. */
  readonly finish: "stop" | "length" | null;
  /** The server's count, or else the tokenizer's; null if both are unknown. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** A task with its completions, before they are checked. */
export interface AnsweredTaskRow extends Row {
  /** The messages, with the user template applied. The chat template's system prompt is in the provenance. */
  readonly prompt: readonly Message[];
  readonly answer: Json;
  readonly verifier: VerifierSpec;
  readonly metadata: { readonly [key: string]: Json };
  /** `numSamples` completions. */
  readonly completions: readonly BenchmarkCompletion[];
  /** The weights of a custom `engine` when it answered; null if it does not report them. Absent for the measured model. */
  readonly engineWeights?: string | null;
}

export interface BenchmarkVerdict {
  /** `unfinished`: the thinking did not end; the reward is 0. Only `unfinished` and `graded` have a reward. */
  readonly status: "graded" | "unfinished" | "refusal" | "code" | "unparsed" | "cut" | "error";
  /** Why the completion did not pass, a judge's reply, or the verifier's error; null if there is none. */
  readonly raw: string | null;
}

/** One task with its completions and their grades, in the order of `completions`. */
export interface BenchmarkRow extends AnsweredTaskRow {
  /** Null if the verifier failed: unknown, not 0. */
  readonly rewards: readonly (number | null)[];
  readonly passed: readonly (boolean | null)[];
  readonly verdicts: readonly BenchmarkVerdict[];
}
