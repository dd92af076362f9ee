import type { RunVersion } from "./run-version.ts";

interface Kept<T> {
  readonly version: string;
  readonly result: Promise<T>;
  size: number;
}

/**
 * Keeps results until their version changes, the least recently used first to go.
 *
 * @param maxSize Largest sum of sizes. A result larger than a quarter of it is not kept.
 * @param sizeOf Returns the size of a result.
 */
export function keptResults<T>(maxSize: number, sizeOf: (result: T) => number) {
  const kept = new Map<string, Kept<T>>();
  let total = 0;

  function remove(key: string, entry: Kept<T>): void {
    if (kept.get(key) !== entry) return;
    kept.delete(key);
    total -= entry.size;
  }

  function add(key: string, version: string, result: Promise<T>): void {
    const old = kept.get(key);
    if (old !== undefined) remove(key, old);
    const entry: Kept<T> = { version, result, size: 0 };
    kept.set(key, entry);
    result.then(
      (value) => {
        if (kept.get(key) !== entry) return;
        entry.size = sizeOf(value);
        total += entry.size;
        if (entry.size > maxSize / 4) remove(key, entry);
        for (const [name, oldest] of kept) {
          if (total <= maxSize) break;
          remove(name, oldest);
        }
      },
      () => remove(key, entry),
    );
  }

  return {
    /** Whether a result of some version is kept. */
    has: (key: string): boolean => kept.has(key),
    /** Returns the result of a version, if it is kept or being made, and marks it as used. */
    find(key: string, version: RunVersion): Promise<T> | null {
      const entry = kept.get(key);
      if (entry === undefined || entry.version !== version.text) return null;
      kept.delete(key);
      kept.set(key, entry);
      return entry.result;
    },
    add(key: string, version: RunVersion, result: Promise<T>): void {
      if (version.isSettled) add(key, version.text, result);
    },
  };
}
