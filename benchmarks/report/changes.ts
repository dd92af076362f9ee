import { ratioOf, type Comparison, type Spread } from "./results.ts";

/** How a ratio differs from that of the last report. */
export interface Change {
  readonly name: string;
  readonly before: Spread;
  readonly after: Spread;
  /** Null if the ranges of both runs overlap, or the medians differ by less than `leastShare`. */
  readonly verdict: "better" | "worse" | null;
}

/** Smaller changes do not count, because memory hardly varies between the repeats of one run. */
const leastShare = 0.03;

/**
 * Compares the ratios of two reports; work that only one of them measured is left out. With five repeats each, two runs of the same
 * program have ranges without overlap in 2 of 252 cases.
 */
export function changesOf(before: readonly Comparison[], after: readonly Comparison[]): Change[] {
  return after.flatMap((now) => {
    const last = before.find(
      (one) => one.name === now.name && one.peer === now.peer && one.ratio === now.ratio,
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
