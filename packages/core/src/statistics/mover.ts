import type { Interval } from "./intervals.ts";

/** An estimate without its standard error. */
export interface Limits {
  readonly value: number | null;
  readonly ci95: Interval | null;
}

/**
 * Returns first minus second of two independent estimates, with limits computed from theirs: MOVER (Zou and Donner 2008,
 * Statistics in Medicine 27:1693). With Wilson limits of two shares this is Newcombe 1998, Statistics in Medicine 17:873,
 * method 10. Null if one of the two has no value; without an interval if one of them has none.
 */
export function moverDifference(
  first: Limits,
  second: Limits,
): { readonly delta: number; readonly ci95: Interval | null } | null {
  if (first.value === null || second.value === null) return null;
  const delta = first.value - second.value;
  if (first.ci95 === null || second.ci95 === null) return { delta, ci95: null };
  const below = Math.hypot(first.value - first.ci95[0], second.ci95[1] - second.value);
  const above = Math.hypot(first.ci95[1] - first.value, second.value - second.ci95[0]);
  return { delta, ci95: [delta - below, delta + above] };
}
