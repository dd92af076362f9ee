import { type Grader, type Verdict, type VerdictSpending, isCacheable } from "@periodic-eval/contracts";
import { isRecord, quoteValue, judgeError } from "@periodic-eval/contracts/options";

/**
 * Returns copies of the verdicts that a grader returned, one per request. A value that is not a verdict becomes one with the status
 * `error` and the reason: it must not count as an answer in which the grader found nothing, nor fail the grading of other answers.
 * Scores are finite numbers; others are left out.
 *
 * @throws PeriodicEvalError `judge` for anything but an array of `count` values.
 */
export function readVerdicts(
  { name }: Pick<Grader, "name">,
  returned: unknown,
  count: number,
): readonly Verdict[] {
  if (Array.isArray(returned) && returned.length === count)
    return Array.from(returned as readonly unknown[], readVerdict);
  const got = Array.isArray(returned) ? `${returned.length} verdicts` : quoteValue(returned);
  const expected = `${count}${Array.isArray(returned) ? "" : " verdicts"}, one per answer`;
  const fix = "Return a verdict with status error for an answer that the judge could not grade.";
  throw judgeError(`judge "${name}"`, got, expected, fix);
}

function readVerdict(returned: unknown): Verdict {
  const { status, scores, raw = null, statuses, model, spent } = isRecord(returned) ? returned : {};
  const known = isRecord(scores) ? Object.entries(scores).filter(([, score]) => Number.isFinite(score)) : [];
  const verdict = {
    status,
    raw: typeof raw === "string" || raw === null ? raw : quoteValue(raw),
    ...(status === "graded" && known.length > 0 && { scores: Object.fromEntries(known) }),
    ...(statuses !== undefined && { statuses: isRecord(statuses) ? { ...statuses } : statuses }),
    ...(model !== undefined && { model }),
    ...(isSpending(spent) && { spent: { ...spent } }),
  };
  if (isCacheable(status === "error" ? { ...verdict, status: "unparsed" } : verdict))
    return verdict as Verdict;
  return { status: "error", raw: `the grader returned ${quoteValue(returned)}, which is not a verdict` };
}

/** Whether spending can be added to that of other verdicts. */
function isSpending(value: unknown): value is VerdictSpending {
  if (!isRecord(value)) return false;
  const { calls, cached, inputTokens, outputTokens, cost } = value;
  const isAmount = (amount: unknown) => Number.isFinite(amount) && (amount as number) >= 0;
  return [calls, cached, inputTokens, outputTokens].every(isAmount) && (cost === null || isAmount(cost));
}
