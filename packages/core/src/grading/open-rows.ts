import type { Json, PeriodicEvalError, Verdict, VerdictSpending } from "@periodic-eval/contracts";
import { judgeError, shortMessage } from "@periodic-eval/contracts/options";

/** The fields of a row that hold its verdict. */
interface GradedRow {
  /** `unfinished`: the thinking did not end, and the row was not judged. */
  readonly status: Verdict["status"] | "unfinished";
  /** Requests, tokens and cost of the verdict and of failed attempts to get it. */
  readonly judgeSpent?: VerdictSpending | null;
}

/**
 * Grades the rows without a verdict, and those that are still ungraded. Keeps the other verdicts, which a failed grading by the same
 * judge has paid for, and adds what the failed attempts have cost.
 *
 * @param grade Returns the rows that it receives with their verdicts, in order.
 */
export async function gradeOpenRows<A extends object, G extends A & GradedRow>(
  rows: readonly A[],
  isUngraded: (row: G) => boolean,
  grade: (open: readonly A[]) => Promise<readonly G[]>,
): Promise<readonly G[]> {
  const isGradedOnce = (row: A): row is G => "status" in row;
  const isKept = (row: A): row is G => isGradedOnce(row) && !isUngraded(row);
  const graded = (await grade(rows.filter((row) => !isKept(row)))).values();
  return rows.map((row) => {
    if (isKept(row)) return row;
    const again = graded.next().value!;
    const earlier = isGradedOnce(row) ? (row.judgeSpent ?? null) : null;
    if (earlier === null) return again;
    return { ...again, judgeSpent: totalSpending([earlier, again.judgeSpent ?? null]) };
  });
}

/** The share of answers without a grade above which a measurement has failed. */
export const defaultErrorShare = 0.1;

interface UngradedOptions {
  /** The judged answers. */
  readonly judged: readonly GradedRow[];
  /** Those of them without a grade, and the judge's reply or why it failed. */
  readonly ungraded: readonly { readonly status: GradedRow["status"]; readonly raw: string | null }[];
  readonly maxShare: number;
}

/** Returns the error of an evaluation whose judge could not grade enough answers; null otherwise. */
export function tooManyUngraded(
  evaluation: string,
  { judged, ungraded, maxShare }: UngradedOptions,
): PeriodicEvalError | null {
  if (ungraded.length <= maxShare * judged.length) return null;
  const errors = ungraded.filter(({ status }) => status === "error");
  const cut = ungraded.filter(({ status }) => status === "cut").length;
  const unparsed = ungraded.length - errors.length - cut;
  const first = (errors[0] ?? ungraded[0]!).raw ?? "nothing";
  const kinds = `${errors.length} failures, ${unparsed} replies that cannot be parsed${cut === 0 ? "" : `, ${cut} replies that were cut off`}`;
  return judgeError(
    evaluation,
    `no score for ${ungraded.length} of ${judged.length} completions (${kinds}; for example: ${shortMessage(first)})`,
    `at most ${100 * maxShare} %`,
    `${cut === 0 ? "" : "Choose a judge that does not think, or raise its maxReplyTokens. "}Read the judge's replies in the rows, correct the judge, and grade the stored rows again with \`npx periodic-eval rejudge\`. Replies that cannot be parsed are kept in the judge's cache: delete it first.`,
  );
}

/** Whether a judge failed on one of these rows. A reply without a score is a reply: another request would bring the same. */
export const hasJudgeErrors = (rows: readonly object[]): boolean =>
  (rows as readonly Partial<GradedRow>[]).some(({ status }) => status === "error");

/** Returns a spending with the keys of snapshots. */
export function spentJson(spent: VerdictSpending | null): Json {
  if (spent === null) return null;
  const { calls, cached, inputTokens, outputTokens, cost } = spent;
  return { calls, cached, input_tokens: inputTokens, output_tokens: outputTokens, cost };
}

/** Returns the sum of what is known; null if nothing is. */
export function totalSpending(all: readonly (VerdictSpending | null)[]): VerdictSpending | null {
  const spent = all.filter((spending) => spending !== null);
  if (spent.length === 0) return null;
  const sum = (of: (part: VerdictSpending) => number) => spent.reduce((total, part) => total + of(part), 0);
  return {
    calls: sum(({ calls }) => calls),
    cached: sum(({ cached }) => cached),
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    cost: spent.every(({ cost }) => cost === null) ? null : sum(({ cost }) => cost ?? 0),
  };
}
