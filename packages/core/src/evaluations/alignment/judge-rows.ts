import { PeriodicEvalError } from "../../errors.ts";
import type { Grader, GradeRequest } from "../../contracts/grading.ts";
import type { CallOptions } from "../../contracts/model.ts";
import { withVerdict, type AlignmentRow, type AnsweredRow } from "./row.ts";
import type { JudgePrompts } from "./questions.ts";

export interface JudgeRows {
  readonly judge: Grader;
  /** What rows name in `judgePrompts`; as the snapshot's provenance keeps them (`judge_prompts`). */
  readonly prompts: Readonly<Record<string, JudgePrompts>>;
}

/**
 * The prompts of questions that a grader follows: all of them, or none where it reads none (a rule).
 *
 * @throws PeriodicEvalError `config` for a judge that would pass over some: its numbers would bear their name.
 */
export function selectJudgePrompts(judge: Grader, prompts: JudgeRows["prompts"]): JudgeRows["prompts"] | null {
  const { promptNames } = judge;
  if (promptNames === undefined) return null;
  const names = [...new Set(Object.values(prompts).flatMap((own) => Object.keys(own)))];
  const followed = names.filter((name) => promptNames.includes(name));
  if (followed.length === names.length) return prompts;
  throw new PeriodicEvalError({
    code: "config",
    where: `judge "${judge.name}"`,
    got: `judge prompts ${names.join(", ")}, of which it follows ${followed.join(", ") || "none"}`,
    expected: "a judge that follows them",
    fix: 'Choose method "logprob", or remove judge_prompts from the questions.',
  });
}

/**
 * Each row with the judge's verdict, in order; one whose thinking did not end is not judged, an anchor
 * past every cache. An earlier verdict in a row is
 * replaced.
 *
 * @throws PeriodicEvalError `config` for a judge that does not follow the prompts; `judge` where it gives fewer or more
 * verdicts than it was asked for; `data` where a row names prompts that are not there; and whatever the judge throws.
 */
export async function judgeRows<R extends AnsweredRow>(
  rows: readonly R[],
  { judge, prompts }: JudgeRows,
  options: CallOptions,
): Promise<readonly AlignmentRow[]> {
  const followed = selectJudgePrompts(judge, prompts);
  const requests = rows.flatMap(({ id, kind, question, answer, judgePrompts }): GradeRequest[] => {
    if (answer === null) return [];
    const request = { question, answer, ...(kind === "anchor" && { fresh: true }) };
    if (judgePrompts === null || followed === null) return [request];
    const own = followed[judgePrompts];
    if (own !== undefined) return [{ ...request, prompts: { ...own } }];
    throw new PeriodicEvalError({
      code: "data",
      where: `row "${id}"`,
      got: `judgePrompts "${judgePrompts}"`,
      expected: `one of ${Object.keys(prompts).join(", ") || "no prompts"}`,
      fix: "Take rows and prompts from one snapshot.",
    });
  });
  const verdicts = requests.length === 0 ? [] : await judge.grade(requests, options);
  if (verdicts.length !== requests.length) {
    throw new PeriodicEvalError({
      code: "judge",
      where: `judge "${judge.name}"`,
      got: `${verdicts.length} verdicts`,
      expected: `${requests.length}, one for each answer`,
      fix: "Return a verdict of status error where the judge failed.",
    });
  }
  const next = verdicts.values();
  return rows.map((row) => withVerdict(row, row.answer === null ? null : next.next().value!));
}
