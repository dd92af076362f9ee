import { filledText } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { splitOf } from "./split-source.ts";
import { fieldsOf, onePart } from "./task-documents.ts";
import { generationTask } from "./task-kinds.ts";
import type { SampledTask } from "./task.ts";

/** The answer if no number was found, as in lm-evaluation-harness. */
const invalid = "[invalid]";

/** The filters of gsm8k, by name: each extracts the compared answer from a completion. */
export const answerFilters = {
  /** The number after the first `#### `. */
  "strict-match": (text: string): string => /#### (-?[0-9.,]+)/.exec(text)?.[1] ?? invalid,
  /** The last thing that looks like a number. */
  "flexible-extract": (text: string): string => text.match(/-?[$0-9.,]{2,}|-?[0-9]+/g)?.at(-1) ?? invalid,
} as const;

export type AnswerFilter = keyof typeof answerFilters;

/** Removed before answers are compared: commas, dollar signs, everything up to the last `#### `, a full stop at the end. */
const ignored = [/,/g, /\$/g, /^[^]*#### /g, /\.(?=\n?$)/g];

/** Implements `exact_match` with the options of gsm8k in lm-evaluation-harness 0.4.13: removes `ignored`, ignores case. */
export function isSameAnswer(extracted: string, reference: string): boolean {
  return normalized(extracted) === normalized(reference);
}

const normalized = (text: string): string =>
  ignored.reduce((rest, pattern) => rest.replaceAll(pattern, ""), text).toLowerCase();

const problemSchema = z.object({
  question: filledText(),
  /** Steps, then `#### ` and the result. */
  answer: filledText(),
});

/** The extracted answer of each filter, and whether it is right. */
type Extracted = {
  readonly [filter in AnswerFilter]: { readonly answer: string; readonly correct: boolean };
};

const filters = ["strict-match", "flexible-extract"] as const satisfies readonly AnswerFilter[];

/**
 * GSM8K (arXiv:2110.14168), equal to `gsm8k` of lm-evaluation-harness 0.4.13: greedy completions of at most 256 tokens, cut before
 * `until`, from which two filters extract the result. Metrics: `exact_match,strict-match` and `exact_match,flexible-extract`.
 * Five examples from `train` by default. A prompt that does not fit loses examples on its left and is counted (`truncated`).
 *
 * Data: rows of `{question, answer}` with the result after `#### `: `test.jsonl` and `train.jsonl` in a folder, or
 * `hf:openai/gsm8k`.
 */
export const gsm8k: SampledTask = generationTask<z.infer<typeof problemSchema>, Extracted>({
  name: "gsm8k",
  version: "3.0",
  defaultShots: 5,
  maxNewTokens: 256,
  stop: ["Question:", "</s>", "<|im_end|>"],
  settings: { filters: [...filters] },
  parts: onePart(splitOf("test", "main"), splitOf("train", "main")),
  read: (row) => fieldsOf(row, problemSchema),
  ask: ({ question }) => `Question: ${question}\nAnswer:`,
  answer: ({ answer }) => answer,
  target: ({ answer }) => answer,
  score: ({ answer }, text) => extracted(text, answer),
  metrics: ({ rate }) =>
    Object.fromEntries(
      filters.map((filter, at) => [
        `exact_match,${filter}`,
        rate((row) => row.score && row.score[filter].correct, { higherIsBetter: true, primary: at === 0 }),
      ]),
    ),
});

function extracted(text: string, reference: string): Extracted {
  const of = (filter: AnswerFilter) => {
    const answer = answerFilters[filter](text);
    return { answer, correct: isSameAnswer(answer, reference) };
  };
  return { "strict-match": of("strict-match"), "flexible-extract": of("flexible-extract") };
}
