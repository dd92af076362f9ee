import { studentQuantile, studentTwoSided } from "./distributions.ts";
import { isRounding, tEstimate, total, type Estimate, type Unit } from "./intervals.ts";
import { power } from "./paired-shares.ts";
import { choose } from "./permutation.ts";

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
