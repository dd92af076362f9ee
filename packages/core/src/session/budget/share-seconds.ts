import type { AnyEvaluation } from "@periodic-eval/contracts";

/** The measurements of one id that are still to come, and what they cost. */
export interface Wanted {
  readonly id: string;
  readonly size: MeasurementSize;
  /** Number of measurements; at least 1. */
  readonly measurements: number;
  /** A measurement of m rows takes `fixed + m · perRow` seconds. */
  readonly fixed: number;
  readonly perRow: number;
}

/** How many measurements an id gets, and the rows of each; both are 0 if it gets none. */
export interface Share {
  readonly measurements: number;
  readonly rows: number;
}

/**
 * Shares seconds among the measurements to come. If all fit, all are whole. Otherwise all sizes shrink by the same share of what
 * lies between the whole and the smallest size. If not even the smallest fit, every id gives up the same share of its
 * measurements.
 */
export function shareSeconds(seconds: number, wanted: readonly Wanted[]): ReadonlyMap<string, Share> {
  // Slightly more, to make up for sums that rounding made too small.
  const room = seconds * (1 + 1e-9);
  const possible = wanted.map((entry) => (entry.size.whole === 0 ? { ...entry, measurements: 0 } : entry));
  const counted = fewerMeasurements(room, possible);
  const between = shareBetween(room, counted);
  return new Map(
    counted.map(({ id, size, measurements }) => [
      id,
      {
        measurements,
        rows: measurements === 0 ? 0 : roundDown(size.least + between * (size.whole - size.least), size),
      },
    ]),
  );
}

/** Whether shares leave out measurements or rows. */
export const isReduced = (ahead: readonly Wanted[], shares: ReadonlyMap<string, Share>): boolean =>
  ahead.some(({ id, size, measurements }) => {
    const share = shares.get(id)!;
    return share.rows < size.whole || share.measurements < measurements;
  });

/** Returns the seconds that all measurements of these shares take. */
export function plannedSeconds(wanted: readonly Wanted[], shares: ReadonlyMap<string, Share>): number {
  return wanted.reduce((total, entry) => {
    const { measurements, rows } = shares.get(entry.id)!;
    return total + measurements * secondsOf(entry, rows);
  }, 0);
}

const secondsOf = ({ fixed, perRow }: Wanted, rows: number) => fixed + perRow * rows;
const sum = (wanted: readonly Wanted[], seconds: (entry: Wanted) => number) =>
  wanted.reduce((total, entry) => total + entry.measurements * seconds(entry), 0);

/** Reduces the numbers of measurements, evenly, until those of the smallest size fit. */
function fewerMeasurements(room: number, wanted: readonly Wanted[]): readonly Wanted[] {
  const least = (entry: Wanted) => secondsOf(entry, entry.size.least);
  const all = sum(wanted, least);
  if (all <= room) return wanted;
  const ratio = Math.max(0, room / all);
  const shares = wanted.map((entry) => ({ ...entry, measurements: Math.floor(ratio * entry.measurements) }));
  let left = room - sum(shares, least);
  // Rounding down left seconds over: they pay for further measurements, first of the ids that lost most.
  const lost = shares.map((share, i) => ({ i, part: ratio * wanted[i]!.measurements - share.measurements }));
  for (const { i } of lost.sort((a, b) => b.part - a.part)) {
    const share = shares[i]!;
    if (share.measurements === wanted[i]!.measurements || least(share) > left) continue;
    left -= least(share);
    shares[i] = { ...share, measurements: share.measurements + 1 };
  }
  return shares;
}

/** Returns the largest share, 0 to 1, of what lies between the smallest and the whole sizes that fits. */
function shareBetween(room: number, wanted: readonly Wanted[]): number {
  const least = sum(wanted, (entry) => secondsOf(entry, entry.size.least));
  const whole = sum(wanted, (entry) => secondsOf(entry, entry.size.whole));
  return whole <= room ? 1 : Math.max(0, Math.min(1, (room - least) / (whole - least)));
}

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

/** Share of the allowed pause that is held back for rows that are slower than expected. */
const windowSlack = 0.1;
/** Returns the rows of the largest measurement that fits into a window of these seconds; 0 if the smallest does not fit. */
export const wholeInWindow = (
  seconds: number,
  { size, fixed, perRow }: Pick<Wanted, "size" | "fixed" | "perRow">,
) => roundDown(rowsWithin((1 - windowSlack) * seconds, { fixed, perRow }, size.whole), size);

function rowsWithin(
  seconds: number,
  { fixed, perRow }: Pick<Wanted, "fixed" | "perRow">,
  rows: number,
): number {
  if (!(perRow > 0)) return rows;
  // Slightly more, to make up for sums that rounding made too small.
  return Math.max(0, Math.min(rows, Math.floor(((1 + 1e-9) * seconds - fixed) / perRow)));
}
