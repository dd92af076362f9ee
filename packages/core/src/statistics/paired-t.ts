import { studentQuantile, studentTwoSided } from "./distributions.ts";
import { centred, isNothing, total, type Estimate, type Unit } from "./intervals.ts";
import { power } from "./paired.ts";
import { choose } from "./permutation.ts";

/** One unit (a row, or the rows of one question) at two looks. */
export interface UnitPair {
  readonly now: Unit;
  readonly before: Unit;
}

export interface PairedT extends Estimate {
  readonly p: number | null;
  /** Units − 1; of a difference of two, Satterthwaite's. */
  readonly df: number;
}

/**
 * Σ value / Σ weight now minus then, over the same units: a paired t test. With weights of 1 the classical one on the
 * differences; else each unit's part of the difference by the delta method. Null p and interval under two units.
 * Where every unit changed alike, t would be infinite however few they are: there is no interval, and p is the sign
 * test's 2^(1 − units), or 1 if none changed.
 */
export function pairedT(pairs: readonly UnitPair[]): PairedT {
  const df = pairs.length - 1;
  const now = ratioParts(pairs.map((pair) => pair.now));
  const then = ratioParts(pairs.map((pair) => pair.before));
  if (now === null || then === null) return { value: null, stderr: null, ci95: null, p: null, df };
  const delta = now.ratio - then.ratio;
  const estimate = centred(
    delta,
    now.parts.map((part, i) => part - then.parts[i]!),
  );
  if (estimate.stderr === null) return { ...estimate, p: null, df };
  const size = Math.max(Math.abs(now.ratio), Math.abs(then.ratio));
  if (isNothing(estimate.stderr, size))
    return { ...alike(delta), p: isNothing(Math.abs(delta), size) ? 1 : 2 ** -df, df };
  const t = delta === 0 ? 0 : Math.abs(delta) / estimate.stderr;
  return { ...estimate, p: studentTwoSided(t, df), df };
}

const alike = (value: number) => ({ value, stderr: 0, ci95: null });

/**
 * First minus second of two independent changes: Welch's t, degrees of freedom by Satterthwaite. Null p and interval
 * where one of them has no standard error. Where units varied on neither side there is no interval, and p is the chance
 * that labels drawn at random would part them so, 2/C(units, units of the first), or 1 if both changed alike.
 */
export function welchOf(first: PairedT, second: PairedT): PairedT {
  const nothing = { stderr: null, ci95: null, p: null, df: first.df + second.df };
  if (first.value === null || second.value === null) return { ...nothing, value: null };
  const value = first.value - second.value;
  if (first.stderr === null || second.stderr === null) return { ...nothing, value };
  const stderr = Math.hypot(first.stderr, second.stderr);
  if (stderr === 0) {
    const isSame = isNothing(Math.abs(value), Math.max(Math.abs(first.value), Math.abs(second.value)));
    const p = isSame ? 1 : Math.min(1, 2 / choose(nothing.df + 2, first.df + 1));
    return { ...alike(value), p, df: nothing.df };
  }
  const df = stderr ** 4 / (first.stderr ** 4 / first.df + second.stderr ** 4 / second.df);
  const half = studentQuantile(0.975, df) * stderr;
  const t = value === 0 ? 0 : Math.abs(value) / stderr;
  return { value, stderr, ci95: [value - half, value + half], p: studentTwoSided(t, df), df };
}

/** Smallest change that a paired t test at level `alpha` finds four times in five; null where nothing varied. */
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
