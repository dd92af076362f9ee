import type { AnyEvaluation } from "@periodic-eval/contracts";

/** How many rows a measurement has, and how the budget may reduce them. */
export interface MeasurementSize {
  readonly whole: number;
  /** Fewest rows of a reduced measurement. */
  readonly least: number;
  /** Rows are reduced in multiples of this: all samples of one item, or one sample of every item. */
  readonly step: number;
  /** A multiple of `step`, for people: `items`, or `completions of each item`. */
  readonly unit: string;
}

/** Items are reduced to this share of them if the evaluation does not name a minimum. */
const leastShare = 0.2;

/** Whether a smaller measurement keeps all items and takes fewer samples of each. */
export const reducesSamples = ({ samplesPerItem = 1, canReduceSamples = false }: AnyEvaluation): boolean =>
  canReduceSamples && samplesPerItem > 1;

/** Returns the size of a measurement of `items` items. */
export function sizeOf(evaluation: AnyEvaluation, items: number): MeasurementSize {
  const { samplesPerItem = 1, minItems } = evaluation;
  const whole = samplesPerItem * items;
  if (reducesSamples(evaluation))
    return { whole, least: items, step: items, unit: "completions of each item" };
  const least = Math.min(items, minItems ?? Math.ceil(leastShare * items));
  return { whole, least: samplesPerItem * least, step: samplesPerItem, unit: "items" };
}

/** Returns the largest size of at most `rows` rows; 0 if that is less than the smallest size. */
export function roundDown(rows: number, { whole, least, step }: MeasurementSize): number {
  if (rows >= whole) return whole;
  const rounded = step * Math.floor(rows / step);
  return rounded >= least ? rounded : 0;
}

/** Describes a size: `whole, 200 items`, `40 of 200 items`, `skipped`. */
export function describeSize(rows: number, { whole, step, unit }: MeasurementSize): string {
  if (rows === whole) return `whole, ${whole / step} ${unit}`;
  return rows === 0 ? "skipped" : `${Math.floor(rows / step)} of ${whole / step} ${unit}`;
}
