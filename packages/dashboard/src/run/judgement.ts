import type { Paired } from "@periodic-eval/core";
import type { MetricSummary } from "./phase-summary.ts";

/**
 * Returns a part of a metric's range as a change in its unit: 0.2 is 20 points of a share. Infinite for metrics without a bounded
 * range, such as nats.
 */
export const partOfRange = (
  { unit, range: [least, most] }: Pick<MetricSummary, "unit" | "range">,
  part: number,
): number => part * (unit === "share" || unit === "probability" ? 1 : most - least);

/** A headline says that there are too few rows if only changes beyond half of the range would have been detected. */
const headlinePart = 0.5;

/**
 * The verdict of a phase's measurements about a metric. `void`: it cannot be judged. `untested`: nothing was compared. `too few`: no evidence,
 * and only changes beyond the limit would have been detected.
 */
export type Judgement = "void" | "untested" | "too few" | "no change" | "better" | "worse" | "changed";

/**
 * Judges a metric at the end of a phase. Page, terminal and gate use the same judgement.
 *
 * @param limit Largest detectable change at which `no evidence` says something.
 */
export function judgementOf(summary: MetricSummary, limit = partOfRange(summary, headlinePart)): Judgement {
  const { voidReason, change } = summary;
  if (voidReason !== null) return "void";
  if (change === null || change.verdict === null) return "untested";
  if (change.verdict !== "no evidence") return change.verdict;
  return isDetected(change, limit) ? "no change" : "too few";
}

const isDetected = ({ minimal_detectable_change: detectable }: Paired, limit: number): boolean =>
  detectable !== null && Math.abs(detectable) <= limit;
