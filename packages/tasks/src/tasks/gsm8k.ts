import { rolloutEvaluation, type RolloutItem } from "../families/rollout.ts";
import { answerFilters, isSameAnswer, type AnswerFilter } from "./gsm8k-answer.ts";
import type { SampledTask } from "./sampled-task.ts";
import { checkTaskOptions } from "./options.ts";
import { filledTextOf } from "./row-fields.ts";
import { splitOf } from "./split-source.ts";
import { documentsOnce, sampleOf, type TaskDocument, type TaskReading } from "./task-documents.ts";

interface Problem {
  readonly question: string;
  /** Steps, and behind `#### ` the result. */
  readonly answer: string;
}

/** Of each filter what it took from the completion, and whether that is right. */
type Extracted = {
  readonly [filter in AnswerFilter]: { readonly answer: string; readonly correct: boolean };
};

const reading: TaskReading<Problem> = {
  task: "gsm8k",
  parts: [
    {
      subject: null,
      groups: [],
      description: "",
      test: splitOf("test", "main"),
      pool: splitOf("train", "main"),
    },
  ],
  read: (row) => ({ question: filledTextOf(row, "question"), answer: filledTextOf(row, "answer") }),
  ask: ({ question }) => `Question: ${question}\nAnswer:`,
  answer: ({ answer }) => answer,
};

const [name, version, defaultShots] = ["gsm8k", "3.0", 5];
const [maxNewTokens, stop] = [256, ["Question:", "</s>", "<|im_end|>"]];
const filters = ["strict-match", "flexible-extract"] as const satisfies readonly AnswerFilter[];

/**
 * GSM8K (arXiv:2110.14168) as lm-evaluation-harness 0.4.13 has it: greedy completions of at most 256 tokens, cut before `until`,
 * from which two filters take the result; `exact_match,strict-match` and `exact_match,flexible-extract`. Five examples of
 * `train`. A prompt that does not fit loses examples on its left, and is counted (`truncated`).
 *
 * Data: `{question, answer}`, the result behind `#### `: `test.jsonl` and `train.jsonl` in a folder, or `hf:openai/gsm8k`.
 */
export const gsm8k: SampledTask = {
  name,
  version,
  defaultShots,
  settings: {
    output_type: "generate_until",
    max_gen_toks: maxNewTokens,
    until: stop,
    do_sample: false,
    temperature: 0,
    filters: [...filters],
  },
  sample: (_, item) => ({
    ...sampleOf(item),
    target: (item as RolloutItem<TaskDocument<Problem>>).document.question.answer,
  }),
  open(options) {
    checkTaskOptions(name, options);
    const { shots = defaultShots, subsample } = options;
    return rolloutEvaluation<TaskDocument<Problem>, Extracted>({
      name,
      version,
      documents: documentsOnce(reading, options, shots),
      ...(subsample !== undefined && { subsample }),
      prompt: ({ prompt }) => prompt,
      maxNewTokens,
      stop,
      overflow: "left",
      score: ({ question }, text) => extracted(text, question.answer),
      metrics: ({ rate }) =>
        Object.fromEntries(
          filters.map((filter, at) => [
            `exact_match,${filter}`,
            rate((row) => row.score && row.score[filter].correct, {
              higherIsBetter: true,
              primary: at === 0,
            }),
          ]),
        ),
    });
  },
};

function extracted(text: string, reference: string): Extracted {
  const of = (filter: AnswerFilter) => {
    const answer = answerFilters[filter](text);
    return { answer, correct: isSameAnswer(answer, reference) };
  };
  return { "strict-match": of("strict-match"), "flexible-extract": of("flexible-extract") };
}
