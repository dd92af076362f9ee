import { judgeGrader, type JudgeGrader, type JudgeOptions } from "@periodic-eval/core";

/** The scores of a pair judge: for the answer that it sees first, and for the second. */
export const pairScores = ["first", "second"] as const;

const instructions = `Two assistants were given the same request. Compare their answers.

[REQUEST]
{question}
[END OF REQUEST]

{answer}

Rate each answer from 0 (useless) to 100 (could not be better) by how well it does what was asked: whether it is right, complete, clear, and free of what was not asked for. A longer answer is not better for its length, nor one for the place at which it stands. Give the same number twice where neither is better.
Reply with one JSON object and nothing else, in this form:
{"reasoning": "<one short sentence>", "first": <number>, "second": <number>}`;

/** Formats two answers for the judge's prompt. */
export const pairText = (first: string, second: string): string =>
  `[FIRST ANSWER]\n${first}\n[END OF FIRST ANSWER]\n\n[SECOND ANSWER]\n${second}\n[END OF SECOND ANSWER]`;

export interface PairJudgeOptions extends Omit<JudgeOptions, "scores" | "prompts" | "method"> {
  /** The judge's prompt, with `{question}` and `{answer}` (both answers) in it; a default is included. */
  readonly prompt?: string;
}

/**
 * Returns a grader for `winRate`: a language model that sees two answers at once and scores each.
 *
 * @throws PeriodicEvalError as `judgeGrader`.
 */
export function pairJudge({ prompt = instructions, ...options }: PairJudgeOptions): Promise<JudgeGrader> {
  return judgeGrader({ ...options, ...pairOptions(prompt) });
}

/** The options by which any judge grades pairs. */
export const pairOptions = (prompt = instructions) =>
  ({ method: "json", scores: pairScores, prompts: { json: prompt } }) as const;
