/** What one look took. */
export interface LookTime {
  readonly items: number;
  /** In `measure`. */
  readonly seconds: number;
  /** Items behind the first call, as far as `progress` told of them; null where it did not. */
  readonly told: Timed | null;
  /** Seconds round it: guards, writing. */
  readonly aroundSeconds: number;
  /** Measured after a first call, which compiles kernels and fills caches. */
  readonly isWarm: boolean;
}

export interface Timed {
  readonly items: number;
  readonly seconds: number;
}

/** What a look of m items is expected to take: `fixed + m · perItem` seconds. */
export interface LookCost {
  readonly fixed: number;
  readonly perItem: number;
}

/** Seconds of the look at the end. */
export interface EndCost {
  readonly expected: number;
  /** What may have been of the first call only, or come with every look; 0 once further looks have told. */
  readonly doubtful: number;
}

/** So many of the latest looks count beside the start: a model may get slower, a pause of the machine passes. */
const remembered = 8;
/** By how much the mean of m items may differ from that of all, times √m: two standard errors, where items scatter by a third. */
const scatter = 0.7;

interface Looks {
  /** The latest first call of most items: as a rule the phase's start, which measures what its end does. */
  readonly start: LookTime;
  readonly others: readonly LookTime[];
}

/** Learns from looks what further ones will cost, for each snapshot id. */
export class LookCosts {
  readonly #looks = new Map<string, Looks>();

  learn(id: string, time: LookTime): void {
    const known = this.#looks.get(id);
    // What was before a start was of another phase.
    const isStart = known === undefined || (!time.isWarm && time.items >= known.start.items);
    this.#looks.set(
      id,
      isStart
        ? { start: time, others: [] }
        : { start: known.start, others: [...known.others, time].slice(-remembered) },
    );
  }

  /** Null where the id was not measured yet; with `and`, as if that had been learnt as well. */
  of(id: string, and: LookTime | null = null): LookCost | null {
    const looks = this.#with(id, and);
    return looks && costOf(looks);
  }

  /** As `of`, of the look at the end, which is of so many items. */
  end(id: string, items: number, and: LookTime | null = null): EndCost | null {
    const looks = this.#with(id, and);
    return looks && endOf(looks, items);
  }

  #with(id: string, and: LookTime | null): Looks | null {
    const known = this.#looks.get(id) ?? null;
    if (and === null) return known;
    return known === null ? { start: and, others: [] } : { ...known, others: [...known.others, and] };
  }
}

/**
 * Robust to noise: medians, to which each look adds as many items as it tells of. What an item takes is told by
 * `progress`, or by how much less than the start a smaller look took; what a look takes beside its items, by looks that
 * are warm.
 */
function costOf({ start, others }: Looks): LookCost {
  const all = [start, ...others];
  const warm = all.filter(({ isWarm }) => isWarm);
  const judged = warm.length > 0 ? warm : all;
  const told = all.flatMap((one) => (one.told === null ? [] : [rateOf(one.told)]));
  // A first call makes items seem dearer, never cheaper.
  const slope = median(told.length > 0 ? told : slopesFrom(start, warm)) ?? Infinity;
  const rate = median([...told, ...judged.map(rateOf)])!;
  const perItem = slope > 0 ? Math.min(slope, rate) : rate;
  const around = median(judged.map(({ aroundSeconds }) => ({ value: aroundSeconds, weight: 1 })))!;
  const inside = median(warm.map((one) => ({ value: one.seconds - perItem * one.items, weight: 1 }))) ?? 0;
  return { fixed: around + Math.max(0, inside), perItem };
}

/**
 * The end measures the items that the start did, at no cost of a first call. How much that was is known where `progress`
 * told what an item takes. Where it did not, the end is expected to take what the start took, as far as that is within
 * what later looks tell: the few items of theirs may be quicker or slower than all are.
 */
function endOf(looks: Looks, items: number): EndCost {
  const { start, others } = looks;
  const { fixed, perItem } = costOf(looks);
  const expected = fixed + perItem * items;
  const warm = [start, ...others].filter(({ isWarm }) => isWarm);
  if (warm.length === 0) return { expected, doubtful: Math.max(0, start.seconds - perItem * start.items) };
  if (start.told !== null || start.items < items) return { expected, doubtful: 0 };
  // Each look takes the first items: two of them tell of no more than the larger.
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

/** Seconds of an item by what other looks left out of the start; of one of nearly its size it would tell noise. */
function slopesFrom(start: LookTime, others: readonly LookTime[]): readonly Weighed[] {
  return others
    .map((one) => ({ items: start.items - one.items, seconds: start.seconds - one.seconds, of: one.items }))
    .filter(({ items }) => Math.abs(items) >= start.items / 4)
    .map(({ items, seconds, of }) => ({
      value: seconds / items,
      // As many items as scatter as much by themselves.
      weight: items ** 2 / (start.items + of),
    }));
}

/** Half of the weight lies on either side; null of nothing. */
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
