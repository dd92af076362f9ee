import type { Wanted, Share } from "./share-seconds.ts";

/** Sizes and numbers of measurements that differ by at most this share from what was announced are not announced again. */
const tolerance = 0.1;

interface Announced {
  readonly wanted: Wanted;
  readonly rows: number;
  /** Measurements of the plan that are still to be skipped. */
  skips: number;
}

/** The plan that was announced last. Reports whether it still holds. */
export class AnnouncedPlan {
  readonly #ids = new Map<string, Announced>();
  readonly #isReduced: boolean;

  constructor(ahead: readonly Wanted[], shares: ReadonlyMap<string, Share>) {
    for (const wanted of ahead) {
      const { rows, measurements } = shares.get(wanted.id)!;
      this.#ids.set(wanted.id, { wanted, rows, skips: wanted.measurements - measurements });
    }
    this.#isReduced = isReduced(ahead, shares);
  }

  countSkip(id: string): void {
    const announced = this.#ids.get(id);
    if (announced !== undefined) announced.skips -= 1;
  }

  /** Whether the plan of the measurements still to come is another one. */
  differsFrom(ahead: readonly Wanted[], shares: ReadonlyMap<string, Share>): boolean {
    if (ahead.length > 0 && this.#isReduced && !isReduced(ahead, shares)) return true;
    return ahead.some(({ id, measurements }) => {
      const announced = this.#ids.get(id);
      // An id that was not planned, because only its hook requests it, has no announced size.
      if (announced === undefined) return false;
      const { wanted, skips } = announced;
      const share = shares.get(id)!;
      const moreSkips = Math.abs(measurements - share.measurements - skips);
      if (moreSkips > tolerance * wanted.measurements) return true;
      const moreRows = Math.abs(share.rows - announced.rows);
      return share.rows > 0 && announced.rows > 0 && moreRows > tolerance * wanted.size.whole;
    });
  }
}

/** Whether shares leave out measurements or rows. */
export const isReduced = (ahead: readonly Wanted[], shares: ReadonlyMap<string, Share>): boolean =>
  ahead.some(({ id, size, measurements }) => {
    const share = shares.get(id)!;
    return share.rows < size.whole || share.measurements < measurements;
  });
