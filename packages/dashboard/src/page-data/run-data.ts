import type { Paired } from "@periodic-eval/core";

/** The block `run-data` of a page of one run or of several: the numbers behind its charts. */
export interface RunData {
  /** Length of the x axis in run steps. */
  readonly steps: number;
  /** Names of the parts to which the points of a curve belong: the phases of a run; on a page of several runs, the runs and their mean. */
  readonly parts: readonly string[];
  readonly partsAre: "phase" | "run" | "line";
  /** The phases of the run, or those that all runs share. */
  readonly phases: readonly PhaseData[];
  readonly curves: readonly CurveData[];
}

/** A phase on the x axis: its first and last run step. */
interface PhaseData {
  readonly name: string;
  /** Its length, and how it ended; null if that is unknown. */
  readonly about: string | null;
  readonly from: number;
  readonly to: number;
  /** Run steps of the measurement that met a condition of `stop_when` and of the last clean step; absent if none was met. */
  readonly stop?: { readonly met: number; readonly clean: number | null };
}

/** One metric of one callback, or one training metric, over the run. */
export interface CurveData {
  /** Unique on the page: `capability/accuracy`. The figure of a chart names its curve in `data-curve`. */
  readonly key: string;
  /** The callback's id; null for training metrics. */
  readonly callback: string | null;
  readonly metric: string;
  /** For people: `misaligned rate`. */
  readonly name: string;
  /** `share` is shown in percent. */
  readonly unit: string;
  readonly higherIsBetter: boolean | null;
  /** The value of the baseline of each phase, null if it has none; absent if no phase has one. */
  readonly baselines?: readonly (number | null)[];
  /** Names of the lines of this curve, to which its points belong instead of the page's parts. The last line is the thickest. */
  readonly lines?: readonly string[];
  /** In run order. */
  readonly points: readonly PointData[];
}

export interface PointData {
  /** Index in `parts`. */
  readonly part: number;
  readonly step: number;
  readonly runStep: number;
  readonly value: number | null;
  /** The measured value as a string, if `value` is on the scale of the chart only. */
  readonly measured?: string;
  readonly ci95: readonly [number, number] | null;
  /** Observed rows, or runs of a mean; null for training metrics. */
  readonly n: number | null;
  /** The verdict of the comparison with the baseline. */
  readonly verdict: Paired["verdict"];
  /** Absent if the measurement is complete. */
  readonly status?: string;
  /** Describes the comparison with the baseline. */
  readonly change?: string;
}

/** Returns at most `count` evenly spaced items, including the first and the last. */
export function evenly<T>(items: readonly T[], count = 120): readonly T[] {
  if (items.length <= count) return items;
  const every = (items.length - 1) / (count - 1);
  return Array.from({ length: count }, (_, at) => items[Math.round(at * every)]!);
}
