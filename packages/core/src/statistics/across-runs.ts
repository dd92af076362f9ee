import type { Estimate } from "./intervals.ts";
import { pairedT, welchOf, type PairedT } from "./paired-t.ts";

/** One quantity, a value per run. An interval needs at least two runs. */
export type RunValues = readonly number[];

/** Returns the mean over runs with its t interval: runs are the units, not questions. The interval is null if all are equal. */
export function meanOverRuns(values: RunValues): Estimate {
  const { value, stderr, ci95 } = sideOf(values);
  return { value, stderr, ci95 };
}

/** Returns first minus second of independent runs, by Welch's t. Interval and p are null if a side has one run. */
export function differenceOverRuns(first: RunValues, second: RunValues): Omit<PairedT, "df"> {
  const { df: _, ...difference } = welchOf(sideOf(first), sideOf(second));
  return difference;
}

const sideOf = (values: RunValues): PairedT =>
  pairedT(values.map((value) => ({ now: { value, weight: 1 }, before: { value: 0, weight: 1 } })));
