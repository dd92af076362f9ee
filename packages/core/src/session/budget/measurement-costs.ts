/** The measured duration of one measurement. */
export interface MeasurementTime {
  readonly items: number;
  /** Seconds inside `measure`. */
  readonly seconds: number;
  /** The items after the first model call, if `progress` reported them in between; else null. */
  readonly afterFirstCall: Timed | null;
  /** Seconds around `measure`: guards, writing. */
  readonly aroundSeconds: number;
  /** Whether an earlier call of this session had already compiled kernels and filled caches. */
  readonly isWarm: boolean;
}

export interface Timed {
  readonly items: number;
  readonly seconds: number;
}

/** The expected duration of a measurement of m items: `fixed + m · perItem` seconds. */
export interface MeasurementCost {
  readonly fixed: number;
  readonly perItem: number;
}

/** The expected seconds of the measurement at the end. */
export interface EndCost {
  readonly expected: number;
  /** Seconds that the first call alone cost or that recur with every measurement; 0 once later measurements show which. */
  readonly doubtful: number;
}

/** How many of the latest measurements count beside the start: a model may slow down, a pause of the machine passes. */
const remembered = 8;
/**
 * Times 1/√m: the relative difference between the mean cost of m items and that of all. Two standard errors, if the cost of
 * items varies by a third.
 */
const scatter = 0.7;

interface Measurements {
  /** The latest first call of most items: usually the start of the phase, which measures the same items as its end. */
  readonly start: MeasurementTime;
  readonly others: readonly MeasurementTime[];
}

/** Learns from past measurements what further ones will cost, for each snapshot id. */
export class MeasurementCosts {
  readonly #measurements = new Map<string, Measurements>();

  learn(id: string, time: MeasurementTime): void {
    const known = this.#measurements.get(id);
    // Measurements before a start belong to another phase.
    const isStart = known === undefined || (!time.isWarm && time.items >= known.start.items);
    this.#measurements.set(
      id,
      isStart
        ? { start: time, others: [] }
        : { start: known.start, others: [...known.others, time].slice(-remembered) },
    );
  }

  /** Returns null if the id was not measured yet. Counts `and` as if it had been learned too. */
  of(id: string, and: MeasurementTime | null = null): MeasurementCost | null {
    const measurements = this.#with(id, and);
    return measurements && costOf(measurements);
  }

  /** Returns the cost of the measurement at the end, which has `items` items; null if the id was not measured yet. */
  end(id: string, items: number, and: MeasurementTime | null = null): EndCost | null {
    const measurements = this.#with(id, and);
    return measurements && endOf(measurements, items);
  }

  #with(id: string, and: MeasurementTime | null): Measurements | null {
    const known = this.#measurements.get(id) ?? null;
    if (and === null) return known;
    return known === null ? { start: and, others: [] } : { ...known, others: [...known.others, and] };
  }
}

/**
 * Estimates costs by medians, weighted by items, so that noise does little harm. The seconds per item come from `progress`,
 * or from how much less than the start a smaller measurement took. The fixed seconds come from warm measurements.
 */
function costOf({ start, others }: Measurements): MeasurementCost {
  const all = [start, ...others];
  const warm = all.filter(({ isWarm }) => isWarm);
  const judged = warm.length > 0 ? warm : all;
  const rates = all.flatMap((one) => (one.afterFirstCall === null ? [] : [rateOf(one.afterFirstCall)]));
  // A first call makes items seem more expensive, never cheaper.
  const slope = median(rates.length > 0 ? rates : slopesFrom(start, warm)) ?? Infinity;
  const rate = median([...rates, ...judged.map(rateOf)])!;
  const perItem = slope > 0 ? Math.min(slope, rate) : rate;
  const around = median(judged.map(({ aroundSeconds }) => ({ value: aroundSeconds, weight: 1 })))!;
  const inside = median(warm.map((one) => ({ value: one.seconds - perItem * one.items, weight: 1 }))) ?? 0;
  return { fixed: around + Math.max(0, inside), perItem };
}

/**
 * The end measures the same items as the start, without the cost of a first call. That cost is known if `progress` reported
 * the seconds per item. If not, the end is expected to take as long as the start, within the range that later measurements
 * allow: their few items may be faster or slower than the average.
 */
function endOf(measurements: Measurements, items: number): EndCost {
  const { start, others } = measurements;
  const { fixed, perItem } = costOf(measurements);
  const expected = fixed + perItem * items;
  const warm = [start, ...others].filter(({ isWarm }) => isWarm);
  if (warm.length === 0) return { expected, doubtful: Math.max(0, start.seconds - perItem * start.items) };
  if (start.afterFirstCall !== null || start.items < items) return { expected, doubtful: 0 };
  // Every measurement takes the first items, so two of them cover no more items than the larger one.
  const most = Math.max(...warm.map((one) => one.items));
  const band = (scatter * perItem * items) / Math.sqrt(most);
  const asStart = start.aroundSeconds + start.seconds;
  return { expected: Math.min(Math.max(asStart, expected - band), expected + band), doubtful: 0 };
}

interface Weighed {
  readonly value: number;
  readonly weight: number;
}

const rateOf = ({ items, seconds }: Timed): Weighed => ({ value: seconds / items, weight: items });

/** Estimates seconds per item from measurements smaller than the start; one of nearly its size would only add noise. */
function slopesFrom(start: MeasurementTime, others: readonly MeasurementTime[]): readonly Weighed[] {
  return others
    .map((one) => ({ items: start.items - one.items, seconds: start.seconds - one.seconds, of: one.items }))
    .filter(({ items }) => Math.abs(items) >= start.items / 4)
    .map(({ items, seconds, of }) => ({
      value: seconds / items,
      // The number of items with the same standard error.
      weight: items ** 2 / (start.items + of),
    }));
}

/** Returns the weighted median; null if there are no values. */
function median(values: readonly Weighed[]): number | null {
  const sorted = [...values].sort((a, b) => a.value - b.value);
  const half = sorted.reduce((sum, { weight }) => sum + weight, 0) / 2;
  let below = 0;
  for (const [i, { value, weight }] of sorted.entries()) {
    below += weight;
    if (below === half) return (value + sorted[i + 1]!.value) / 2;
    if (below > half) return value;
  }
  return null;
}
