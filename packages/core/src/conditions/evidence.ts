import type { MetricValue, Paired, Snapshot } from "@periodic-eval/contracts";
import { binomialTail, studentQuantile, studentTwoSided } from "../statistics/distributions.ts";
import { familyAlpha } from "../statistics/planned-comparisons.ts";
import { limitIn, type Condition, type ValueTest, type VerdictTest } from "./condition.ts";

/**
 * Returns the p-value of a condition on a metric of a graded snapshot: the probability of such a measurement if the condition
 * did not hold. Null if the condition does not hold for the measured numbers, or if they cannot be judged.
 *
 * - A verdict has the p-value of the comparison with the baseline.
 * - A limit of a share is tested on the answers that were counted, one-sided (binomial); of any other metric by the t of its
 *   interval, one-sided.
 */
export function evidenceFor({ test }: Condition, metric: string, snapshot: Snapshot): number | null {
  const value = snapshot.metrics[metric];
  if (value === undefined || !canJudge(metric, snapshot)) return null;
  if (test.kind === "value") return limitEvidence(test, value);
  const paired = snapshot.paired.baseline?.[metric];
  return paired === undefined ? null : verdictEvidence(test, paired, value.higher_is_better);
}

/** Whether a metric has a value that no warning voids. */
export function canJudge(metric: string, { metrics, warnings }: Snapshot): boolean {
  const isVoid = warnings.some(
    ({ void: voids, metrics: of }) => voids && (of === null || of.includes(metric)),
  );
  return (metrics[metric]?.value ?? null) !== null && !isVoid;
}

/**
 * Whether a condition holds as gates and the page judge it: by the verdict of the comparison with the baseline, or by the whole 95 %
 * interval of the value.
 */
export function holdsFor(condition: Condition, metric: string, snapshot: Snapshot): boolean {
  const p = evidenceFor(condition, metric, snapshot);
  if (p === null) return false;
  if (condition.test.kind === "value") return p <= 0.025;
  return p <= (snapshot.paired.baseline![metric]!.alpha ?? familyAlpha);
}

function verdictEvidence(
  { verdict }: VerdictTest,
  { delta, p_value: p }: Paired,
  higherIsBetter: boolean | null,
): number | null {
  if (delta === null || delta === 0) return null;
  const direction = higherIsBetter === null ? null : delta > 0 === higherIsBetter ? "better" : "worse";
  return verdict === "changed" || verdict === direction ? p : null;
}

function limitEvidence(test: ValueTest, { value, n, stderr, ci95, unit, range }: MetricValue): number | null {
  const limit = limitIn(unit, test);
  const isAbove = test.operator.startsWith(">");
  if (value === null || (isAbove ? value <= limit : value >= limit)) return null;
  if (unit === "share" && range?.[0] !== -1 && limit > 0 && limit < 1) {
    const hits = Math.round(value * n);
    return isAbove ? binomialTail(hits, n, limit) : binomialTail(n - hits, n, 1 - limit);
  }
  if (stderr === 0) return constantEvidence(value, limit, n, range?.[isAbove ? 0 : 1] ?? null);
  // An interval that its range cuts on both sides hides its width.
  const isHidden = range !== undefined && ci95?.[0] === range[0] && ci95?.[1] === range[1];
  if (stderr === null || ci95 === null || isHidden) return null;
  // An interval that its range cuts is narrower on that side.
  const reach = Math.max(value - ci95[0], ci95[1] - value) / stderr;
  return studentTwoSided((value - limit) / stderr, degreesOf(reach)) / 2;
}

/**
 * Returns the p-value of `n` equal values beyond a limit: to bring the mean to the limit, a share of values at the other end of the range
 * would be needed, of which none was seen. Null without such an end.
 */
function constantEvidence(value: number, limit: number, n: number, end: number | null): number | null {
  return end === null || end === value ? null : (1 - Math.min(1, (value - limit) / (value - end))) ** n;
}

/** Returns the degrees of freedom of a t interval that reaches this many standard errors from its middle. */
function degreesOf(reach: number): number {
  const isWider = (df: number) => studentQuantile(0.975, df) > reach;
  let [low, high] = [1, 2];
  while (isWider(high) && high < 1e6) [low, high] = [high, 2 * high];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    [low, high] = isWider(middle) ? [middle, high] : [low, middle];
  }
  // The fewer degrees are the more cautious ones.
  return low;
}
