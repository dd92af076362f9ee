/** What one look took. */
export interface LookTime {
  readonly items: number;
  /** In `measure`. */
  readonly seconds: number;
  /** In `measure` too, of a first call, and left out of `seconds`. */
  readonly firstCallSeconds: number;
  /** Round it: guards, writing. */
  readonly aroundSeconds: number;
  /** Measured after a first call, which compiles kernels and fills caches. */
  readonly isWarm: boolean;
  /** `seconds` is free of what only a first call costs, even where the look is not warm. */
  readonly isClean: boolean;
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
 * Robust to noise: medians, and of the slopes between looks of different sizes their median (Theil–Sen), so that
 * seconds which do not depend on the items are told apart from those that do.
 */
function costOf(times: readonly LookTime[]): LookCost {
  const clean = times.filter(({ isClean }) => isClean);
  const warm = times.filter(({ isWarm }) => isWarm);
  const around = median((warm.length > 0 ? warm : times).map(({ aroundSeconds }) => aroundSeconds));
  // What a first look took beside its items makes them seem dearer, never cheaper.
  const { inside, perItem } = line(clean) ?? line(times) ?? perItemOnly(clean.length > 0 ? clean : times);
  const most = Math.max(...times.map(({ items }) => items));
  const ratios = clean
    .filter(({ items }) => items >= most / 2)
    .slice(-3)
    .map(({ items, seconds }) => seconds / (inside + perItem * items));
  return {
    fixed: around + inside,
    perItem,
    doubtful: warm.length > 0 ? 0 : Math.max(...times.map(({ firstCallSeconds }) => firstCallSeconds)),
    slowest: Math.min(mostSlowness, Math.max(1, ...ratios.filter(Number.isFinite))),
  };
}

/** Null where all looks are of nearly one size: they tell noise, not a slope. */
function line(times: readonly LookTime[]): { readonly inside: number; readonly perItem: number } | null {
  const most = Math.max(...times.map(({ items }) => items));
  const slopes = times.flatMap((a, i) =>
    times
      .slice(i + 1)
      .filter((b) => Math.abs(a.items - b.items) >= most / 4)
      .map((b) => (a.seconds - b.seconds) / (a.items - b.items)),
  );
  if (slopes.length === 0) return null;
  const perItem = median(slopes);
  const inside = median(times.map(({ items, seconds }) => seconds - perItem * items));
  return perItem > 0 && inside >= 0 ? { inside, perItem } : null;
}

function perItemOnly(times: readonly LookTime[]) {
  return { inside: 0, perItem: median(times.map(({ items, seconds }) => seconds / items)) };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1]! + sorted[Math.floor(middle)]!) / 2;
}
