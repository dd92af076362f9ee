/** What one look took. */
export interface LookTime {
  readonly items: number;
  /** In `measure`. */
  readonly seconds: number;
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
  /** The slowest of the latest looks, as a multiple of what is expected; at least 1. */
  readonly slowest: number;
}

/** So many of the latest looks count: a model may get slower, a pause of the machine passes. */
const remembered = 8;

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
  const known = clean.length > 0 ? clean : times;
  const warm = times.filter(({ isWarm }) => isWarm);
  const around = median((warm.length > 0 ? warm : times).map(({ aroundSeconds }) => aroundSeconds));
  const { inside, perItem } = line(known);
  const ratios = known.slice(-3).map(({ items, seconds }) => seconds / (inside + perItem * items));
  return {
    fixed: around + inside,
    perItem,
    slowest: Math.max(1, ...ratios.filter(Number.isFinite)),
  };
}

function line(times: readonly LookTime[]): { readonly inside: number; readonly perItem: number } {
  const most = Math.max(...times.map(({ items }) => items));
  const slopes = times.flatMap((a, i) =>
    times.slice(i + 1).flatMap((b) =>
      // Looks of nearly one size tell noise, not a slope.
      Math.abs(a.items - b.items) < most / 4 ? [] : [(a.seconds - b.seconds) / (a.items - b.items)],
    ),
  );
  if (slopes.length > 0) {
    const perItem = median(slopes);
    const inside = median(times.map(({ items, seconds }) => seconds - perItem * items));
    if (perItem > 0 && inside > 0) return { inside, perItem };
  }
  return { inside: 0, perItem: median(times.map(({ items, seconds }) => seconds / items)) };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1]! + sorted[Math.floor(middle)]!) / 2;
}
