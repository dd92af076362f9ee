import type { Range } from "@periodic-eval/contracts";

const unbounded: Range = [-Infinity, Infinity];
const ofShares: Range = [0, 1];

/** Returns the range of a metric's values (of each side's, for a contrast): [0, 1] for rates, else its option `range`. */
export const rangeOf = ({
  kind,
  options,
}: {
  readonly kind: "rate" | "mean" | "ratio";
  readonly options: { readonly range?: Range };
}): Range => (kind === "rate" ? ofShares : (options.range ?? unbounded));

/** Returns the range of the difference of two values. */
export function rangeOfDifference([min, max]: Range): Range {
  const span = max - min;
  return [-span, span];
}

/**
 * Cuts the interval of an estimate to the range of its quantity, because t and normal intervals may exceed it. The interval
 * still contains a value that rounding moved beyond the range.
 */
export function withinRange<
  E extends { readonly value: number | null; readonly ci95: readonly [number, number] | null },
>(estimate: E, [min, max]: Range): E {
  const { value, ci95 } = estimate;
  if (value === null || ci95 === null) return estimate;
  const low = Math.min(value, Math.max(min, ci95[0]));
  const high = Math.max(value, Math.min(max, ci95[1]));
  return { ...estimate, ci95: [low, high] };
}
