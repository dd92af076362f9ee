import type { Range } from "../contracts/evaluation.ts";

const unbounded: Range = [-Infinity, Infinity];
const ofShares: Range = [0, 1];

/** What values of a metric can be, of a contrast those of each side: shares, or the range that it is told to have. */
export const rangeOf = ({
  kind,
  options,
}: {
  readonly kind: "rate" | "mean" | "ratio";
  readonly options: { readonly range?: Range };
}): Range => (kind === "rate" ? ofShares : (options.range ?? unbounded));

/** What the difference of two values of a range can be. */
export function rangeOfDifference([least, most]: Range): Range {
  const span = most - least;
  return [-span, span];
}

/**
 * An estimate whose interval is cut to the range of its quantity, of which t and the normal distribution know nothing. A
 * value that rounding took over the edge stays in its interval.
 */
export function withinRange<
  E extends { readonly value: number | null; readonly ci95: readonly [number, number] | null },
>(estimate: E, [least, most]: Range): E {
  const { value, ci95 } = estimate;
  if (value === null || ci95 === null) return estimate;
  const low = Math.min(value, Math.max(least, ci95[0]));
  const high = Math.max(value, Math.min(most, ci95[1]));
  return { ...estimate, ci95: [low, high] };
}
