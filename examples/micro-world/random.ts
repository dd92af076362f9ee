/** A seeded source of random choices. Changing its algorithm changes all committed files. */
export interface Draw {
  /** A number in [0, 1). */
  next(): number;
  /** An integer in [0, n). */
  below(n: number): number;
  pick<T>(items: readonly T[]): T;
  shuffled<T>(items: readonly T[]): T[];
}

/** Creates a Mulberry32 generator (Tommy Ettinger, public domain), seeded with an FNV-1a hash of the name. */
export function seededDraw(name: string): Draw {
  let state = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(name)) state = Math.imul(state ^ byte, 0x01000193);
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n: number): number => Math.floor(next() * n);
  return {
    next,
    below,
    pick: (items) => items[below(items.length)] as (typeof items)[number],
    shuffled: (items) => {
      const copy = [...items];
      for (let i = copy.length - 1; i > 0; i -= 1) {
        const j = below(i + 1);
        [copy[i], copy[j]] = [copy[j] as (typeof copy)[number], copy[i] as (typeof copy)[number]];
      }
      return copy;
    },
  };
}
