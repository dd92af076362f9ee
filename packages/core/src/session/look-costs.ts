/** What one look took. */
export interface LookTime {
  readonly items: number;
  /** In `measure`. */
  readonly seconds: number;
  /** Seconds of an item behind the first call, as far as `progress` told; null where it did not. */
  readonly perItem: number | null;
  /** Seconds round it: guards, writing. */
  readonly aroundSeconds: number;
  /** Measured after a first call, which compiles kernels and fills caches. */
  readonly isWarm: boolean;
}

/** What a look of m items is expected to take: `fixed + m · perItem` seconds. */
export interface LookCost {
  readonly fixed: number;
  readonly perItem: number;
  /** What may have been of the first call only, or come with every look; 0 once further looks have told. */
  readonly doubtful: number;
  /** The slowest of the latest looks, as a multiple of what is expected; at least 1. */
  readonly slowest: number;
}

/** So many of the latest looks count: a model may get slower, a pause of the machine passes. */
const remembered = 8;
/** A single pause must not keep all time for the end. */
const mostSlowness = 1.25;

/** Learns from looks what further ones will cost, for each snapshot id. */
export class LookCosts {
  readonly #times = new Map<string, readonly LookTime[]>();

  learn(id: string, time: LookTime): void {
    this.#times.set(id, [...(this.#times.get(id) ?? []), time].slice(-remembered));
  }

  /** Null where the id was not measured yet; with `and`, as if that had been learnt as well. */
  of(id: string, and: LookTime | null = null): LookCost | null {
    const times = [...(this.#times.get(id) ?? []), ...(and === null ? [] : [and])];
    return times.length === 0 ? null : costOf(times);
  }
}

/**
 * Robust to noise: medians, and of slopes their median (Theil–Sen). What an item takes is told by `progress` or by looks
 * of several sizes; what a look takes beside its items, by looks that are warm.
 */
function costOf(times: readonly LookTime[]): LookCost {
  const warm = times.filter(({ isWarm }) => isWarm);
  const told = times.flatMap(({ perItem }) => (perItem === null ? [] : [perItem]));
  const slopes = [...told, ...slopesOf(warm)];
  // A first call makes items seem dearer, never cheaper.
  const slope = median(slopes.length > 0 ? slopes : slopesOf(times)) ?? Infinity;
  const judged = warm.length > 0 ? warm : times;
  const ofAll = median(judged.map(({ items, seconds }) => seconds / items))!;
  const perItem = slope > 0 ? Math.min(slope, ofAll) : ofAll;
  const inside = Math.max(0, median(warm.map(({ items, seconds }) => seconds - perItem * items)) ?? 0);
  const around = median(judged.map(({ aroundSeconds }) => aroundSeconds))!;
  const most = Math.max(...times.map(({ items }) => items));
  const ratios = warm
    .filter(({ items }) => items >= most / 2)
    .slice(-3)
    .map(({ items, seconds }) => seconds / (inside + perItem * items));
  return {
    fixed: around + inside,
    perItem,
    doubtful: warm.length > 0 ? 0 : Math.max(...times.map(({ items, seconds }) => seconds - perItem * items)),
    slowest: Math.min(mostSlowness, Math.max(1, ...ratios.filter(Number.isFinite))),
  };
}

/** Of looks of nearly one size there is none: they tell noise. */
function slopesOf(times: readonly LookTime[]): readonly number[] {
  const most = Math.max(...times.map(({ items }) => items));
  return times.flatMap((a, i) =>
    times
      .slice(i + 1)
      .filter((b) => Math.abs(a.items - b.items) >= most / 4)
      .map((b) => (a.seconds - b.seconds) / (a.items - b.items)),
  );
}

function median(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2;
}
