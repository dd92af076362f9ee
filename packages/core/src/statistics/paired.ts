import { normalQuantile } from "./distributions.ts";
import { wilson, type Interval } from "./intervals.ts";

/** Pairs by right and wrong at two looks: right at both, only at the first, only at the second, at neither. */
export type Cells = readonly [both: number, onlyFirst: number, onlySecond: number, neither: number];

/** The share of real changes that a minimal detectable change is found with. */
export const power = 0.8;

/** Exact two-sided McNemar test: p of a split at least this uneven among the pairs that differ, each way equally likely. */
export function mcnemarExact([, onlyFirst, onlySecond]: Cells): number {
  const n = onlyFirst + onlySecond;
  const fewer = Math.min(onlyFirst, onlySecond);
  // C(n, fewer) / 2^n; the halvings are mixed in so that neither factor leaves the range of a double.
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

/** First minus second with its 95 % interval. */
export interface Difference {
  readonly delta: number;
  readonly ci95: Interval;
}

/**
 * The difference of two paired shares: Newcombe 1998, Statistics in Medicine 17:2635, method 10 (Wilson limits,
 * continuity-corrected φ; φ is 0 where a margin is 0). Null without pairs.
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
 * Smallest difference of two paired shares that an exact McNemar test at level `alpha` finds at least four times in
 * five, if as many pairs differ as did here. Connor 1987, Biometrics 43:207, solved for the difference, plus 1/n for
 * the exact test's conservatism (its power there is 0.80 to 0.94; `paired.test.ts`). Null where no difference would be.
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
  // 2^-40 of a share is far below one item.
  for (let i = 0; i < 40; i++) {
    const middle = (low + high) / 2;
    if (isFound(middle)) high = middle;
    else low = middle;
  }
  return Math.min(1, high + 1 / n);
}
