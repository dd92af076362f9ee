/** False alarms allowed per family: one primary metric against its baseline over all looks of a phase. */
export const familyAlpha = 0.05;

export interface ComparisonPlan {
  /** What each earlier look of the phase was given, as its snapshot recorded it. */
  readonly spent: readonly number[];
  /** Looks of the phase in all; null where their number is not known. */
  readonly planned: number | null;
  /** Default `familyAlpha`. */
  readonly total?: number;
}

/**
 * The level of the next look. With a known number of looks what is left is spread evenly over those to come, so that an
 * unchanged plan gives each `total / planned`; without, the k-th gets `total · 6/(π²k²)`, which sums to `total` over all
 * k. Spent levels are never respent, so the sum stays within `total` whatever becomes of the plan, and by Bonferroni
 * the family holds its level under any dependence between looks.
 */
export function alphaOfComparison({ spent, planned, total = familyAlpha }: ComparisonPlan): number {
  const left = Math.max(
    0,
    spent.reduce((rest, alpha) => rest - alpha, total),
  );
  if (planned !== null) return left / Math.max(1, planned - spent.length);
  const k = spent.length + 1;
  return Math.min(left, (total * 6) / (Math.PI * k) ** 2);
}

/**
 * Holm's step-down levels for p-values tested together at `alpha`, in the order given: those with `p ≤ level` are
 * rejected, and the chance of any false one is at most alpha. A null p was not tested and has no level.
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
