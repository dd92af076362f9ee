import type { Range } from "@periodic-eval/contracts";
import { betaQuantile, normalQuantile, studentQuantile } from "./distributions.ts";

const unbounded: Range = [-Infinity, Infinity];
const ofShares: Range = [0, 1];

/** Returns the range of a metric's values (of each side's, for a contrast): [0, 1] for rates, else its option `range`. */
export const rangeOf = ({
  kind,
  options,
}: {
  readonly kind: "rate" | "mean" | "ratio";
  readonly options: { readonly range?: Range };
}): Range => (kind === "rate" ? ofShares : (options.range ?? unbounded));

/** Returns the range of the difference of two values. */
export function rangeOfDifference([min, max]: Range): Range {
  const span = max - min;
  return [-span, span];
}

/**
 * Cuts the interval of an estimate to the range of its quantity, because t and normal intervals may exceed it. The interval
 * still contains a value that rounding moved beyond the range.
 */
export function withinRange<
  E extends { readonly value: number | null; readonly ci95: readonly [number, number] | null },
>(estimate: E, [min, max]: Range): E {
  const { value, ci95 } = estimate;
  if (value === null || ci95 === null) return estimate;
  const low = Math.min(value, Math.max(min, ci95[0]));
  const high = Math.max(value, Math.min(max, ci95[1]));
  return { ...estimate, ci95: [low, high] };
}

export type Interval = readonly [low: number, high: number];

/** An estimated quantity; null for what is unknown. */
export interface Estimate {
  readonly value: number | null;
  readonly stderr: number | null;
  readonly ci95: Interval | null;
}

/** The normal quantile of a two-sided 95 % interval: 1.95996…. */
export const z95 = normalQuantile(0.975);

/**
 * Returns the 95 % score interval of a share (Wilson 1927, Journal of the American Statistical Association 22:209); null
 * without observations. `hits` may be fractional.
 */
export function wilson(hits: number, n: number): Interval | null {
  if (n === 0) return null;
  const share = hits / n;
  const square = (z95 * z95) / n;
  const centre = share + square / 2;
  const half = z95 * Math.sqrt((share * (1 - share)) / n + square / (4 * n));
  return [Math.max(0, (centre - half) / (1 + square)), Math.min(1, (centre + half) / (1 + square))];
}

/** Returns a share of `n` rows with its Wilson interval and the standard error √(p(1−p)/n). */
export function shareEstimate(hits: number, n: number): Estimate {
  if (n === 0) return { value: null, stderr: null, ci95: null };
  const share = hits / n;
  return { value: share, stderr: Math.sqrt((share * (1 - share)) / n), ci95: wilson(hits, n) };
}

/** One independent unit of a ratio Σ value / Σ weight: a row, or the sums over all rows of one question. */
export interface Unit {
  readonly value: number;
  readonly weight: number;
}

/** Returns the sums over units, such as the rows of one question. */
export function total(units: readonly Unit[]): Unit {
  const sum = { value: 0, weight: 0 };
  for (const { value, weight } of units) {
    sum.value += value;
    sum.weight += weight;
  }
  return sum;
}

/**
 * Returns Σ value / Σ weight over m independent units, with a t interval of m − 1 degrees of freedom and the delta method's
 * variance m/(m−1) · Σ(value − ratio · weight)² / (Σ weight)².
 *
 * With weights of 1 this is the mean and its t interval. With one unit per question (sums over its samples) it is the t
 * interval over question means if all questions have equally many samples. If they have not, the value is still the share or
 * mean of all rows and only the interval is over questions (Miller 2024, arXiv 2411.00640, with the factor m/(m−1) added).
 * A single unit has a value and no interval.
 */
export function ratioEstimate(units: readonly Unit[]): Estimate {
  const { value: sum, weight } = total(units);
  if (weight === 0) return { value: null, stderr: null, ci95: null };
  const value = sum / weight;
  return tEstimate(
    value,
    units.map((unit) => (unit.value - value * unit.weight) / weight),
  );
}

/**
 * Returns the exponential of an estimate: exp of its value and limits, and the delta method's standard error. Null if exp
 * overflows.
 */
export function expOf({ value, stderr, ci95 }: Estimate): Estimate {
  const exp = value === null ? null : Math.exp(value);
  if (exp === null || exp === Infinity) return { value: null, stderr: null, ci95: null };
  const high = ci95 === null ? Infinity : Math.exp(ci95[1]);
  return {
    value: exp,
    stderr: stderr === null ? null : exp * stderr,
    ci95: ci95 === null || high === Infinity ? null : [Math.exp(ci95[0]), high],
  };
}

/** Whether a standard error is only the rounding error of numbers of the size `scale`. */
export const isRounding = (stderr: number | null, scale = 1): boolean =>
  stderr !== null && stderr <= 1e-12 * scale;

/** Returns a value with its t interval. `parts` are the contributions of the independent units to its error; they sum to 0. */
export function tEstimate(value: number, parts: readonly number[]): Estimate {
  const m = parts.length;
  if (m < 2) return { value, stderr: null, ci95: null };
  const stderr = Math.sqrt((m / (m - 1)) * parts.reduce((sum, part) => sum + part * part, 0));
  const half = studentQuantile(0.975, m - 1) * stderr;
  return { value, stderr, ci95: [value - half, value + half] };
}

/** The largest correlation between two answers to one question for which `clusteredShareEstimate` keeps 95 %. */
const largestCorrelation = 0.5;

/**
 * Returns a share of clustered rows with the exact interval (Clopper and Pearson 1934, Biometrika 26:404) of the number of
 * independent rows that would have the same variance if two rows of a cluster correlated by 0.5: for m rows in each cluster,
 * n / (1 + (m − 1) · 0.5). The correlation is assumed because few clusters cannot estimate it. The limits depend only on the
 * clusters' sizes and on the hits, and grow with the hits. `stderr` is the spread between the clusters (`ratioEstimate`). A
 * single cluster has a value and no interval.
 *
 * @param clusters One unit per cluster: `value` hits among `weight` rows. `value` may be fractional.
 */
export function clusteredShareEstimate(clusters: readonly Unit[]): Estimate {
  const { value, stderr } = ratioEstimate(clusters);
  const sizes = clusters.map(({ weight }) => weight).filter((weight) => weight > 0);
  if (value === null || sizes.length < 2) return { value, stderr, ci95: null };
  const { value: hits, weight: n } = total(clusters);
  const variances = sizes.reduce((sum, size) => sum + size * (1 + (size - 1) * largestCorrelation), 0);
  return { value, stderr, ci95: clopperPearson((hits * n) / variances, ((n - hits) * n) / variances) };
}

/** Returns the exact 95 % interval of a share. Hits and misses may be fractional. */
function clopperPearson(hits: number, misses: number): Interval {
  const low = hits > 0 ? betaQuantile(0.025, hits, misses + 1) : 0;
  const high = misses > 0 ? 1 - betaQuantile(0.025, misses, hits + 1) : 1;
  return [low, high];
}

/**
 * Returns a share of parts, such as the instructions that an answer follows: `ratioEstimate` cut to [0, 1]. If all units agree,
 * so that nothing varies, the interval is Wilson's with the number of units as the number of observations.
 */
export function partsShareEstimate(units: readonly Unit[]): Estimate {
  const { value, stderr, ci95 } = ratioEstimate(units);
  if (value !== null && (value === 0 || value === 1 || isRounding(stderr))) {
    const { length } = units.filter(({ weight }) => weight > 0);
    return { value, stderr, ci95: wilson(value * length, length) };
  }
  return withinRange({ value, stderr, ci95 }, [0, 1]);
}

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

/**
 * Returns the unbiased pass@k of a problem with `c` correct of `n` samples: 1 − C(n−c, k)/C(n, k) (Chen et al. 2021, arXiv
 * 2107.03374). Null if k > n.
 */
export function passAtK(n: number, c: number, k: number): number | null {
  if (k > n) return null;
  let noneCorrect = 1;
  for (let i = n - c + 1; i <= n; i++) noneCorrect *= Math.max(0, 1 - k / i);
  return 1 - noneCorrect;
}

/** Returns pass^k, the chance that k samples are all correct: C(c, k)/C(n, k) (Yao et al. 2024, τ-bench, arXiv 2406.12045). Null if k > n. */
export function passHatK(n: number, c: number, k: number): number | null {
  if (k > n) return null;
  let allCorrect = 1;
  for (let i = 0; i < k; i++) allCorrect *= Math.max(0, c - i) / (n - i);
  return allCorrect;
}
