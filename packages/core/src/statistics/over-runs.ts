import { ratioEstimate, type Estimate } from "./intervals.ts";
import { welchOf, type PairedT } from "./paired-t.ts";
import { studentTwoSided } from "./distributions.ts";

/** Values of one quantity, a run each; at least two for an interval. */
export type RunValues = readonly number[];

/** The mean over runs with its t interval: runs, not questions, are what varies. */
export const meanOverRuns = (values: RunValues): Estimate =>
  ratioEstimate(values.map((value) => ({ value, weight: 1 })));

/** First minus second, runs of each independent: Welch's t. Null interval and p where a side has one run. */
export function differenceOverRuns(first: RunValues, second: RunValues): Omit<PairedT, "df"> {
  const { df: _, ...difference } = welchOf(sideOf(first), sideOf(second));
  return difference;
}

function sideOf(values: RunValues): PairedT {
  const estimate = meanOverRuns(values);
  const df = values.length - 1;
  const { value, stderr } = estimate;
  const p = value === null || stderr === null ? null : studentTwoSided(Math.abs(value) / stderr, df);
  return { ...estimate, p, df };
}
