/** The block `run-data` of a page of one run or of several: the numbers behind its charts. */
export interface RunData {
  /** Length of the x axis in run steps. */
  readonly steps: number;
  /** Names of the parts to which the points of a curve belong: the phases of a run; on a page of several runs, the runs and their mean. */
  readonly parts: readonly string[];
  readonly partsAre: "phase" | "run";
  readonly curves: readonly CurveData[];
}

/** One metric of one callback, or one training metric, over the run. */
export interface CurveData {
  /** Unique on the page: `capability/accuracy`. A chart names its curve in `data-curve`. */
  readonly key: string;
  /** The callback's id; null for training metrics. */
  readonly callback: string | null;
  readonly metric: string;
  /** For people: `misaligned rate`. */
  readonly name: string;
  /** `share` is shown in percent. */
  readonly unit: string;
  readonly higherIsBetter: boolean | null;
  /** In run order. */
  readonly points: readonly PointData[];
}

export interface PointData {
  /** Index in `parts`. */
  readonly part: number;
  readonly step: number;
  readonly runStep: number;
  readonly value: number | null;
  readonly ci95: readonly [number, number] | null;
  /** Observed rows, or runs of a mean; null for training metrics. */
  readonly n: number | null;
  /** The verdict of the comparison with the baseline. */
  readonly verdict: string | null;
}

/** Returns at most `count` evenly spaced items, including the first and the last. */
export function evenly<T>(items: readonly T[], count = 120): readonly T[] {
  if (items.length <= count) return items;
  const every = (items.length - 1) / (count - 1);
  return Array.from({ length: count }, (_, at) => items[Math.round(at * every)]!);
}
