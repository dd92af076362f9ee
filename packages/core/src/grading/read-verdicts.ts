import type { Grader, Verdict } from "../contracts/grading.ts";
import { PeriodicEvalError } from "../errors.ts";
import { errorMessage } from "../internal/error-message.ts";
import { isRecord } from "../internal/is-record.ts";
import { quoteValue } from "../internal/quote-value.ts";

/**
 * Returns copies of the verdicts that a grader returned, one per request. A value that is not a verdict becomes one with the status
 * `error` and the reason: it must not count as an answer in which the grader found nothing, nor fail the grading of other answers.
 *
 * @throws PeriodicEvalError `judge` for anything but an array of `count` values.
 */
export function readVerdicts({ name }: Grader, returned: unknown, count: number): readonly Verdict[] {
  if (Array.isArray(returned) && returned.length === count)
    return Array.from(returned as readonly unknown[], readVerdict);
  throw new PeriodicEvalError({
    code: "judge",
    where: `judge "${name}"`,
    got: Array.isArray(returned) ? `${returned.length} verdicts` : quoteValue(returned),
    expected: `${count}${Array.isArray(returned) ? "" : " verdicts"}, one per answer`,
    fix: "Return a verdict with status error for an answer that the judge could not grade.",
  });
}

const ungraded: readonly unknown[] = ["refusal", "code", "unparsed", "error"];

function readVerdict(given: unknown): Verdict {
  try {
    const { status, scores, raw = null, ...others } = isRecord(given) ? given : {};
    const text = typeof raw === "string" || raw === null ? raw : quoteValue(raw);
    if (status === "graded" && isRecord(scores))
      return { ...others, status, scores: { ...scores }, raw: text } as Verdict;
    if (ungraded.includes(status)) return { ...others, status, raw: text } as Verdict;
    return { status: "error", raw: `the grader returned ${quoteValue(given)}, which is not a verdict` };
  } catch (error) {
    return { status: "error", raw: errorMessage(error) };
  }
}
