import { normalQuantile, studentQuantile, studentTwoSided } from "./distributions.ts";
import {
  wilson,
  type Interval,
  isRounding,
  tEstimate,
  total,
  type Estimate,
  type Unit,
} from "./intervals.ts";
import { choose } from "./permutation.ts";
import { power } from "./planned-comparisons.ts";

/** Counts of pairs by correctness: correct at both measurements, only at the first, only at the second, at neither. */
export type Cells = readonly [both: number, onlyFirst: number, onlySecond: number, neither: number];

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

/** One unit (a row, or the rows of one question) at two measurements. */
export interface UnitPair {
  readonly now: Unit;
  readonly before: Unit;
}

export interface PairedT extends Estimate {
  readonly p: number | null;
  /** Degrees of freedom: units − 1; Satterthwaite's for a difference of two changes. */
  readonly df: number;
}

/**
 * Returns Σ value / Σ weight now minus before, over the same units, with a paired t test. With weights of 1 it is the classical
 * test on the differences; otherwise the delta method gives each unit's contribution to the difference. With fewer than two
 * units p and interval are null. If every unit changed by the same amount, t would be infinite however few units there are:
 * the interval is then null and p is the sign test's 2^(1 − units), or 1 if no unit changed.
 */
export function pairedT(pairs: readonly UnitPair[]): PairedT {
  const df = pairs.length - 1;
  const now = ratioParts(pairs.map((pair) => pair.now));
  const then = ratioParts(pairs.map((pair) => pair.before));
  if (now === null || then === null) return { value: null, stderr: null, ci95: null, p: null, df };
  const delta = now.ratio - then.ratio;
  const estimate = tEstimate(
    delta,
    now.parts.map((part, i) => part - then.parts[i]!),
  );
  if (estimate.stderr === null) return { ...estimate, p: null, df };
  const size = Math.max(Math.abs(now.ratio), Math.abs(then.ratio));
  if (isRounding(estimate.stderr, size))
    return { ...withoutVariation(delta), p: isRounding(Math.abs(delta), size) ? 1 : 2 ** -df, df };
  const t = delta === 0 ? 0 : Math.abs(delta) / estimate.stderr;
  return { ...estimate, p: studentTwoSided(t, df), df };
}

const withoutVariation = (value: number) => ({ value, stderr: 0, ci95: null });

/**
 * Returns first minus second of two independent changes, by Welch's t with Satterthwaite's degrees of freedom. p and interval
 * are null if one of the changes has no standard error. If the units vary on neither side, the interval is null and p is the
 * chance that random labels separate the units in this way, 2/C(units, units of the first), or 1 if both changed equally.
 */
export function welchOf(first: PairedT, second: PairedT): PairedT {
  const nothing = { stderr: null, ci95: null, p: null, df: first.df + second.df };
  if (first.value === null || second.value === null) return { ...nothing, value: null };
  const value = first.value - second.value;
  if (first.stderr === null || second.stderr === null) return { ...nothing, value };
  const stderr = Math.hypot(first.stderr, second.stderr);
  if (stderr === 0) {
    const isSame = isRounding(Math.abs(value), Math.max(Math.abs(first.value), Math.abs(second.value)));
    const p = isSame ? 1 : Math.min(1, 2 / choose(nothing.df + 2, first.df + 1));
    return { ...withoutVariation(value), p, df: nothing.df };
  }
  const df = stderr ** 4 / (first.stderr ** 4 / first.df + second.stderr ** 4 / second.df);
  const half = studentQuantile(0.975, df) * stderr;
  const t = value === 0 ? 0 : Math.abs(value) / stderr;
  return { value, stderr, ci95: [value - half, value + half], p: studentTwoSided(t, df), df };
}

/** Returns the smallest change that a paired t test at level `alpha` detects with power 0.8; null if nothing varied. */
export function detectableMean({ stderr, df }: Pick<PairedT, "stderr" | "df">, alpha: number): number | null {
  if (stderr === null || stderr === 0 || alpha <= 0) return null;
  return (studentQuantile(1 - alpha / 2, df) + studentQuantile(power, df)) * stderr;
}

function ratioParts(
  units: readonly Unit[],
): { readonly ratio: number; readonly parts: readonly number[] } | null {
  const { value, weight } = total(units);
  if (weight === 0) return null;
  const ratio = value / weight;
  return { ratio, parts: units.map((unit) => (unit.value - ratio * unit.weight) / weight) };
}

/** One quantity, a value per run. An interval needs at least two runs. */
export type RunValues = readonly number[];

/** Returns the mean over runs with its t interval: runs are the units, not questions. The interval is null if all are equal. */
export function meanOverRuns(values: RunValues): Estimate {
  const { value, stderr, ci95 } = sideOf(values);
  return { value, stderr, ci95 };
}

/** Returns first minus second of independent runs, by Welch's t. Interval and p are null if a side has one run. */
export function differenceOverRuns(first: RunValues, second: RunValues): Omit<PairedT, "df"> {
  const { df: _, ...difference } = welchOf(sideOf(first), sideOf(second));
  return difference;
}

const sideOf = (values: RunValues): PairedT =>
  pairedT(values.map((value) => ({ now: { value, weight: 1 }, before: { value: 0, weight: 1 } })));
