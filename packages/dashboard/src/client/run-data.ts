/** The block `run-data` of a run's page: the numbers behind its charts. */
export interface RunData {
  /** Length of the run in steps. */
  readonly steps: number;
  readonly phases: readonly PhaseData[];
  readonly curves: readonly CurveData[];
}

export interface PhaseData {
  readonly name: string;
  /** First and last run step of the phase. */
  readonly from: number;
  readonly to: number;
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
  /** Index in `phases`. */
  readonly phase: number;
  readonly step: number;
  readonly runStep: number;
  readonly value: number | null;
  readonly ci95: readonly [number, number] | null;
  /** Observed rows; null for training metrics. */
  readonly n: number | null;
  /** The verdict of the comparison with the baseline. */
  readonly verdict: string | null;
}
