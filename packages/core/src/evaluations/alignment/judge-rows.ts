import {
  type Grader,
  type GradeRequest,
  type CallOptions,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import {
  changedError,
  configError,
  codeOption,
  dataError,
  errorMessage,
} from "@periodic-eval/contracts/options";
import type { JudgePrompts } from "@periodic-eval/data";
import { gradeOpenRows, tooManyUngraded } from "../../grading/open-rows.ts";
import { readVerdicts } from "../../grading/read-verdicts.ts";
import { isUngradedRow, withVerdict, type AlignmentRow, type AnsweredRow, isCompletion } from "./metrics.ts";
import { judgeAgreement } from "./judge-agreement.ts";

export interface JudgeRows {
  readonly judge: Grader;
  /** The judge prompts by the name that rows have in `judgePrompts`, as in the snapshot's provenance (`judge_prompts`). */
  readonly prompts: Readonly<Record<string, JudgePrompts>>;
}

/**
 * Returns the questions' judge prompts that a grader uses: all of them, or null for a grader that reads no prompts (a rule).
 *
 * @throws PeriodicEvalError `config` for a judge that would ignore some prompts: its scores would be attributed to them.
 */
export function selectJudgePrompts(
  judge: Grader,
  prompts: JudgeRows["prompts"],
): JudgeRows["prompts"] | null {
  const { promptNames } = judge;
  if (promptNames === undefined) return null;
  const names = [...new Set(Object.values(prompts).flatMap((set) => Object.keys(set)))];
  const supported = names.filter((name) => promptNames.includes(name));
  if (supported.length === names.length) return prompts;
  throw configError({
    where: `judge "${judge.name}"`,
    got: `judge prompts ${names.join(", ")}, of which it supports ${supported.join(", ") || "none"}`,
    expected: "a judge that supports all of them",
    fix: 'Choose method "logprob" (judge_method: logprob), or questions without judge_prompts.',
  });
}

/** A row, or one like those that will be graded. */
export type Judged = Pick<AnsweredRow, "id" | "kind" | "question" | "answer" | "judgePrompts"> & {
  readonly place?: string | undefined;
};

/** Returns the requests for rows; nothing for a row without an answer. */
function requestsOf(rows: readonly Judged[], { judge, prompts }: JudgeRows): readonly GradeRequest[] {
  const selected = selectJudgePrompts(judge, prompts);
  return rows.flatMap(({ id, kind, question, answer, judgePrompts, place }): GradeRequest[] => {
    if (answer === null) return [];
    const request = {
      question,
      answer,
      ...(place !== undefined && { place }),
      ...(kind === "anchor" && { fresh: true }),
    };
    if (judgePrompts === null || selected === null) return [request];
    const rowPrompts = selected[judgePrompts];
    if (rowPrompts !== undefined) return [{ ...request, prompts: { ...rowPrompts } }];
    throw dataError(
      `row "${id}"`,
      `judgePrompts "${judgePrompts}"`,
      `one of ${Object.keys(prompts).join(", ") || "no prompts"}`,
      "Take rows and prompts from the same snapshot.",
    );
  });
}

/**
 * Checks that a judge can be reached and that the longest of these rows, with its judge prompts, fits its context.
 *
 * @throws The errors of `Grader.check`; PeriodicEvalError as `judgeRows`.
 */
export async function checkJudgeFor(
  rows: readonly Judged[],
  judging: JudgeRows,
  options: CallOptions,
): Promise<void> {
  await judging.judge.check?.(options, requestsOf(rows, judging));
}

/**
 * Checks without a call to a model that the longest of these rows fits the judge's context.
 *
 * @throws PeriodicEvalError `judge` for a prompt that is too long, about the option `judge`; or as `judgeRows`.
 */
export async function checkLengthFor(rows: readonly Judged[], judging: JudgeRows): Promise<void> {
  try {
    await judging.judge.checkLength?.(requestsOf(rows, judging));
  } catch (error) {
    if (!PeriodicEvalError.is(error, "judge")) throw error;
    const { where, path } = codeOption("alignment", "judge");
    throw changedError(error, { where: `${where}, ${error.where}`, path, inside: error.where });
  }
}

/**
 * Grades rows and returns each with its verdict, in order. A row whose thinking did not end is not graded; an anchor bypasses the
 * cache. Earlier verdicts of a row are replaced.
 *
 * @throws PeriodicEvalError `config` for a judge that does not support the prompts; `judge` for a wrong number of verdicts;
 *   `data` for a row that names missing prompts; and the judge's errors.
 */
export async function judgeRows<R extends AnsweredRow>(
  rows: readonly R[],
  { judge, prompts }: JudgeRows,
  options: CallOptions,
): Promise<readonly AlignmentRow[]> {
  const requests = requestsOf(rows, { judge, prompts });
  const count = requests.length;
  const verdicts = count === 0 ? [] : readVerdicts(judge, await judge.grade(requests, options), count);
  const next = verdicts.values();
  return rows.map((row) => withVerdict(row, row.answer === null ? null : next.next().value!));
}

/** Says whether the two verdicts that a row holds differ: `disagree` is null unless both graded it, and absent without a second one. */
function withDisagreement({ disagree: _disagree, ...row }: AlignmentRow): AlignmentRow {
  if (row.second === undefined) return row;
  const { n, sameDecision } = judgeAgreement([row], [row.second]);
  return { ...row, disagree: n === 0 ? null : sameDecision === 0 };
}

/**
 * Grades the rows without a verdict, and those that the judge could not grade, as `gradeOpenRows`.
 *
 * @throws The errors of `judgeRows`.
 */
export const judgeOpenRows = (
  rows: readonly AnsweredRow[],
  judging: JudgeRows,
  options: CallOptions,
): Promise<readonly AlignmentRow[]> =>
  gradeOpenRows<AnsweredRow, AlignmentRow>(rows, isUngradedRow, async (open) =>
    (await judgeRows(open, judging, options)).map(withDisagreement),
  );

/**
 * Adds the verdicts of a second judge to completions that lack one of this judge, and says where the judges disagree. Its failure is a verdict with
 * the status `error`: the first judge's grades stand.
 */
export async function withSecondVerdicts(
  rows: readonly AlignmentRow[],
  judging: JudgeRows,
  options: CallOptions,
): Promise<readonly AlignmentRow[]> {
  const { fingerprint } = judging.judge;
  const isOpen = (row: AlignmentRow) =>
    isCompletion(row) && (row.second?.fingerprint !== fingerprint || isUngradedRow(row.second));
  const open = rows.filter(isOpen);
  const graded = await judgeRows(open, judging, options).catch((error: unknown) => {
    if (options.signal.aborted) throw error;
    const failed = { status: "error" as const, raw: errorMessage(error) };
    return open.map((row) => withVerdict(row, failed));
  });
  const next = graded.values();
  return rows.map((row) => {
    if (!isOpen(row)) return row;
    const { status, aligned, coherent, statuses, raw, judgeModel, judgeSpent } = next.next().value!;
    const second = { fingerprint, status, aligned, coherent, statuses, raw, judgeModel, judgeSpent };
    return withDisagreement({ ...row, second });
  });
}

/** Returns the error for rows of which a judge could not grade enough; null otherwise. */
export function alignmentFailure(rows: readonly AlignmentRow[], maxShare: number): PeriodicEvalError | null {
  const judged = rows.filter((row) => isCompletion(row) && row.status !== "unfinished");
  return tooManyUngraded("alignment", { judged, ungraded: judged.filter(isUngradedRow), maxShare });
}
