import { isRough, ratioOf, type Comparison, type MeasuredPart, type Spread } from "./results.ts";

/** A ratio in the last report and now. */
export interface Change {
  readonly name: string;
  readonly before: Spread;
  readonly after: Spread;
  /** Null if the ranges of both runs overlap, or the medians differ by less than `leastShare`. */
  readonly verdict: "better" | "worse" | null;
}

/** Smaller changes do not count: memory hardly varies within a run, so that ranges are narrow. */
const leastShare = 0.03;

/** With fewer repeats, the ranges of two runs of the same program are often disjoint. */
const leastRepeats = 5;

/** Returns why the ratios of two reports cannot be compared; null if they can. */
export function obstacleTo(before: MeasuredPart, after: MeasuredPart): string | null {
  if (before.machine !== after.machine)
    return `the last report is from another machine or other versions: ${before.machine}`;
  const [last, now] = [before, after].map(({ extraArgs = [] }) => extraArgs.join(" "));
  if (last !== now) return `the last report has other arguments: ${last || "none"}`;
  if (hasFewRepeats(before)) return `the last report has fewer than ${leastRepeats} repeats`;
  if (hasFewRepeats(after)) return `there are fewer than ${leastRepeats} repeats`;
  if (isRough(before)) return "the machine was busy during the last report";
  return isRough(after) ? "the machine was busy" : null;
}

const hasFewRepeats = ({ comparisons }: MeasuredPart): boolean =>
  comparisons.some(({ ours, peers }) => Math.min(ours.length, peers.length) < leastRepeats);

/**
 * Compares the ratios of two reports. Leaves out work that only one of them measured. With five repeats each, the ranges of two
 * runs of the same program are disjoint in 2 of 252 cases.
 */
export function changesOf(before: readonly Comparison[], after: readonly Comparison[]): Change[] {
  return after.flatMap((now) => {
    const last = before.find(
      (earlier) => earlier.name === now.name && earlier.peer === now.peer && earlier.ratio === now.ratio,
    );
    if (last === undefined) return [];
    const [was, is] = [ratioOf(last), ratioOf(now)];
    const isMore = is.least > was.greatest;
    const isLess = is.greatest < was.least;
    const isLarge = Math.abs(is.median / was.median - 1) >= leastShare;
    const isBetter = now.ratio === "speed" ? isMore : isLess;
    const verdict = (isMore || isLess) && isLarge ? (isBetter ? "better" : "worse") : null;
    return [{ name: now.name, before: was, after: is, verdict }];
  });
}
