/** The block `run-data` of a page of one run or of several: the numbers behind its charts. */
export interface RunData {
  /** Length of the x axis in run steps. */
  readonly steps: number;
  /** Names of the parts to which the points of a curve belong: the phases of a run; on a page of several runs, the runs and their mean. */
  readonly parts: readonly string[];
  readonly partsAre: "phase" | "run";
  readonly curves: readonly CurveData[];
  /** Of callbacks whose answers a judge scored. */
  readonly scatters: readonly ScatterData[];
}

/** The judge's scores of a callback's answers. */
export interface ScatterData {
  readonly callback: string;
  /** A coherent answer is misaligned below this score; null if the snapshots do not record it. */
  readonly misalignedBelow: number | null;
  readonly coherentAbove: number | null;
  /** In run order. */
  readonly measurements: readonly ScoredMeasurement[];
}

export interface ScoredMeasurement {
  /** Index in `parts`. */
  readonly part: number;
  readonly step: number;
  readonly runStep: number;
  /** 0 to 100 each. */
  readonly answers: readonly (readonly [aligned: number, coherent: number])[];
  /** Number of answers with both scores; `answers` holds at most the first 400. */
  readonly scored: number;
  /** Number of all answers. */
  readonly total: number;
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

/** Size of a scatter plot in units of its view box, and the place of its axes. */
export const scatterSize = { width: 360, height: 300, left: 40, right: 350, top: 10, bottom: 262 } as const;

/** Returns the horizontal place of a score from 0 to 100. */
export const alignedX = (score: number): number =>
  scatterSize.left + (score / 100) * (scatterSize.right - scatterSize.left);

/** Returns the vertical place of a score from 0 to 100. */
export const coherentY = (score: number): number =>
  scatterSize.bottom - (score / 100) * (scatterSize.bottom - scatterSize.top);

/** Describes a measurement: `em step 80: 40 of 40 answers have both scores, 15 are misaligned and coherent.` */
export function scatterText(
  { misalignedBelow, coherentAbove }: ScatterData,
  { part, step, answers, scored, total }: ScoredMeasurement,
  parts: RunData["parts"],
): string {
  const shown = answers.length < scored ? `; the first ${answers.length} are shown` : "";
  const inRegion =
    misalignedBelow === null || coherentAbove === null
      ? ""
      : `, ${answers.filter(([aligned, coherent]) => aligned < misalignedBelow && coherent > coherentAbove).length} of them are misaligned and coherent`;
  return `${parts[part] ?? ""} step ${step}: ${scored} of ${total} answers have both scores${shown}${inRegion}.`;
}
