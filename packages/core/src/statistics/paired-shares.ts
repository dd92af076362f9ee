import { normalQuantile } from "./distributions.ts";
import { wilson, type Interval } from "./intervals.ts";

/** Counts of pairs by correctness: correct at both measurements, only at the first, only at the second, at neither. */
export type Cells = readonly [both: number, onlyFirst: number, onlySecond: number, neither: number];

/** The probability with which a minimal detectable change is detected. */
export const power = 0.8;

/**
 * Returns p of the exact two-sided McNemar test (McNemar 1947, Psychometrika 12:153): the chance of a split at least this uneven
 * among the pairs that differ, if both directions are equally likely.
 */
export function mcnemarExact([, onlyFirst, onlySecond]: Cells): number {
  const n = onlyFirst + onlySecond;
  const fewer = Math.min(onlyFirst, onlySecond);
  // C(n, fewer) / 2^n. Halving while multiplying keeps both factors within the range of a double.
  let term = 1;
  let halvings = n;
  for (let j = 1; j <= fewer; j++) {
    term *= (n - fewer + j) / j;
    for (; term > 1 && halvings > 0; halvings--) term /= 2;
  }
  term *= 2 ** -halvings;
  let tail = 0;
  for (let i = fewer; i >= 0; i--) {
    tail += term;
    term *= i / (n - i + 1);
  }
  return Math.min(1, 2 * tail);
}

/** A difference with its 95 % interval. */
export interface Difference {
  readonly delta: number;
  readonly ci95: Interval;
}

/**
 * Returns the first share minus the second of paired answers: Newcombe 1998, Statistics in Medicine 17:2635, method 10 (Wilson
 * limits, continuity-corrected φ, which is 0 if a margin is 0). Null without pairs.
 */
export function newcombePaired([a, b, c, d]: Cells): Difference | null {
  const n = a + b + c + d;
  const first = wilson(a + b, n);
  const second = wilson(a + c, n);
  if (first === null || second === null) return null;
  const phi = correctedPhi([a, b, c, d]);
  const below = [(a + b) / n - first[0], second[1] - (a + c) / n] as const;
  const above = [first[1] - (a + b) / n, (a + c) / n - second[0]] as const;
  const delta = (b - c) / n;
  const reach = ([x, y]: readonly [number, number]) =>
    Math.sqrt(Math.max(0, x * x - 2 * phi * x * y + y * y));
  return { delta, ci95: [delta - reach(below), delta + reach(above)] };
}

function correctedPhi([a, b, c, d]: Cells): number {
  const margins = (a + b) * (c + d) * (a + c) * (b + d);
  if (margins === 0) return 0;
  const cross = a * d - b * c;
  return (cross > 0 ? Math.max(cross - (a + b + c + d) / 2, 0) : cross) / Math.sqrt(margins);
}

/**
 * Returns the smallest difference of two paired shares that an exact McNemar test at level `alpha` detects with a power of at
 * least 0.8, given the share of pairs that differ. Connor 1987, Biometrics 43:207, solved for the difference, plus 1/n because
 * the exact test is conservative (`paired-shares.test.ts` measures a power of 0.80 to 0.94). Null if no difference is
 * detectable.
 */
export function detectableShare([a, b, c, d]: Cells, alpha: number): number | null {
  const n = a + b + c + d;
  if (alpha <= 0 || 2 * 2 ** -n > alpha) return null;
  const [zAlpha, zBeta] = [normalQuantile(1 - alpha / 2), normalQuantile(power)];
  const isFound = (delta: number) => {
    const differing = Math.max((b + c) / n, delta);
    return (
      delta * Math.sqrt(n) >= zAlpha * Math.sqrt(differing) + zBeta * Math.sqrt(differing - delta * delta)
    );
  };
  let low = 0;
  let high = 1;
  // 40 bisections resolve 2^-40, far less than one item.
  for (let i = 0; i < 40; i++) {
    const middle = (low + high) / 2;
    if (isFound(middle)) high = middle;
    else low = middle;
  }
  return Math.min(1, high + 1 / n);
}
