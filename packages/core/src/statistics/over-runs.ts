import type { Estimate } from "./intervals.ts";
import { pairedT, welchOf, type PairedT } from "./paired-t.ts";

/** Values of one quantity, a run each; at least two for an interval. */
export type RunValues = readonly number[];

/** The mean over runs with its t interval, null where all are alike: runs, not questions, are what varies. */
export function meanOverRuns(values: RunValues): Estimate {
  const { value, stderr, ci95 } = sideOf(values);
  return { value, stderr, ci95 };
}

/** First minus second, runs of each independent: Welch's t. Null interval and p where a side has one run. */
export function differenceOverRuns(first: RunValues, second: RunValues): Omit<PairedT, "df"> {
  const { df: _, ...difference } = welchOf(sideOf(first), sideOf(second));
  return difference;
}

const sideOf = (values: RunValues): PairedT =>
  pairedT(values.map((value) => ({ now: { value, weight: 1 }, before: { value: 0, weight: 1 } })));
