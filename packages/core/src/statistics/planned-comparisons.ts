/**
 * The chance of a false alarm per family of comparisons: one primary metric against its baseline, over all measurements of a
 * phase.
 */
export const familyAlpha = 0.05;

/** The probability with which a minimal detectable change is detected. */
export const power = 0.8;

export interface ComparisonPlan {
  /** The levels of the phase's earlier comparisons, from their snapshots. */
  readonly spent: readonly number[];
  /** Number of comparisons in the whole phase; null if unknown. */
  readonly planned: number | null;
}

/**
 * Returns the significance level of the next comparison. If the number of comparisons is known, it spreads the unspent level
 * evenly over the remaining ones, so that an unchanged plan gives each `familyAlpha / planned`. If it is unknown, the k-th comparison
 * gets `familyAlpha · 6/(π²k²)`, which sums to `familyAlpha` over all k. A spent level is never spent again, so the sum stays within
 * `familyAlpha` even if the plan changes, and by Bonferroni's inequality the family keeps its level however its measurements depend
 * on each other.
 */
export function alphaOfComparison({ spent, planned }: ComparisonPlan): number {
  const left = Math.max(
    0,
    spent.reduce((rest, alpha) => rest - alpha, familyAlpha),
  );
  if (planned !== null) return left / Math.max(1, planned - spent.length);
  const k = spent.length + 1;
  return Math.min(left, (familyAlpha * 6) / (Math.PI * k) ** 2);
}

/**
 * Returns Holm's step-down levels (Holm 1979, Scandinavian Journal of Statistics 6:65) for p-values tested together at `alpha`,
 * in the order given. Hypotheses with `p ≤ level` are rejected, and the chance of a false rejection is at most `alpha`. A null
 * p was not tested and has no level.
 */
export function holmLevels(pValues: readonly (number | null)[], alpha: number): (number | null)[] {
  const order = pValues.flatMap((p, index) => (p === null ? [] : [{ p, index }])).sort((a, b) => a.p - b.p);
  const firstKept = order.findIndex(({ p }, rank) => p > alpha / (order.length - rank));
  const levels = Array<number | null>(pValues.length).fill(null);
  order.forEach(({ index }, rank) => {
    levels[index] = alpha / (order.length - (firstKept === -1 ? rank : Math.min(rank, firstKept)));
  });
  return levels;
}
