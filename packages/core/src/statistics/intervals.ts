import { normalQuantile, studentQuantile } from "./distributions.ts";
import { withinRange } from "./range.ts";

export type Interval = readonly [low: number, high: number];

/** What is known of a quantity; null where it is not. */
export interface Estimate {
  readonly value: number | null;
  readonly stderr: number | null;
  readonly ci95: Interval | null;
}

/** z of a two-sided 95 % interval. */
export const z95 = normalQuantile(0.975);

/** The 95 % score interval of a share (Wilson 1927), null without observations. `hits` may be a fraction of `n`. */
export function wilson(hits: number, n: number): Interval | null {
  if (n === 0) return null;
  const share = hits / n;
  const square = (z95 * z95) / n;
  const centre = share + square / 2;
  const half = z95 * Math.sqrt((share * (1 - share)) / n + square / (4 * n));
  return [Math.max(0, (centre - half) / (1 + square)), Math.min(1, (centre + half) / (1 + square))];
}

/** A share of `n` rows with its Wilson interval; the standard error is √(p(1−p)/n). */
export function shareEstimate(hits: number, n: number): Estimate {
  if (n === 0) return { value: null, stderr: null, ci95: null };
  const share = hits / n;
  return { value: share, stderr: Math.sqrt((share * (1 - share)) / n), ci95: wilson(hits, n) };
}

/** One independent unit: a row, or all rows of one question. */
export interface Unit {
  readonly value: number;
  readonly weight: number;
}

/** The sum of units: one unit of all the rows of a question. */
export function total(units: readonly Unit[]): Unit {
  const sum = { value: 0, weight: 0 };
  for (const { value, weight } of units) {
    sum.value += value;
    sum.weight += weight;
  }
  return sum;
}

/**
 * Σ value / Σ weight over independent units, with a t interval of `units − 1` degrees of freedom and the delta method's
 * variance m/(m−1) · Σ(value − ratio · weight)² / (Σ weight)².
 *
 * With weights of 1 that is the mean and its t interval. With one unit per question (sums over its samples) it is the
 * t interval over question means where questions have equally many samples; where they have not, the value stays the
 * share or mean of all rows and only the interval goes by questions (Miller 2024, arXiv 2411.00640, with m/(m−1)).
 * One unit has a value and no interval.
 */
export function ratioEstimate(units: readonly Unit[]): Estimate {
  const { value: sum, weight } = total(units);
  if (weight === 0) return { value: null, stderr: null, ci95: null };
  const value = sum / weight;
  return centred(
    value,
    units.map((unit) => (unit.value - value * unit.weight) / weight),
  );
}

/**
 * exp of an estimated quantity: the interval's limits are exp of its limits, the standard error is by the delta method.
 * Null where exp overflows.
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

/** Whether a standard error, of numbers of the size of `scale`, is no more than their rounding. */
export const isNothing = (stderr: number | null, scale = 1): boolean =>
  stderr !== null && stderr <= 1e-12 * scale;

/** A value with its t interval from the parts that each independent unit adds to its error; they sum to 0. */
export function centred(value: number, parts: readonly number[]): Estimate {
  const m = parts.length;
  if (m < 2) return { value, stderr: null, ci95: null };
  const stderr = Math.sqrt((m / (m - 1)) * parts.reduce((sum, part) => sum + part * part, 0));
  const half = studentQuantile(0.975, m - 1) * stderr;
  return { value, stderr, ci95: [value - half, value + half] };
}

/**
 * A share whose rows share clusters (value: hits, weight: rows of a cluster): `ratioEstimate` within [0, 1]. Where all
 * clusters agree, so that nothing varies, the interval is Wilson's with as many observations as there are clusters.
 */
export function clusteredShareEstimate(clusters: readonly Unit[]): Estimate {
  const { value, stderr, ci95 } = ratioEstimate(clusters);
  if (value !== null && (value === 0 || value === 1 || isNothing(stderr))) {
    const { length } = clusters.filter((cluster) => cluster.weight > 0);
    return { value, stderr, ci95: wilson(value * length, length) };
  }
  return withinRange({ value, stderr, ci95 }, [0, 1]);
}
