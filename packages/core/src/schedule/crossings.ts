import type { Crossing, Progress, Trigger } from "@periodic-eval/contracts";

/** A number ≥ 0 as numerator ÷ 10^scale, exactly as its shortest decimal reads: 0.1 is 1/10, not 3602879701896397/2^55. */
interface Decimal {
  readonly numerator: bigint;
  readonly scale: number;
}

/** Returns the shortest decimal of a finite number ≥ 0. */
export function decimalOf(value: number): Decimal {
  const [digits = "0", exponent = "0"] = String(value).split("e");
  const [whole = "0", fraction = ""] = digits.split(".");
  const scale = fraction.length - Number(exponent);
  const numerator = BigInt(whole + fraction);
  return scale >= 0 ? { numerator, scale } : { numerator: numerator * 10n ** BigInt(-scale), scale: 0 };
}

/** Returns `count · step`, rounded once to the nearest number. */
export const multipleOf = (step: Decimal, count: number): number =>
  Number(`${step.numerator * BigInt(count)}e-${step.scale}`);

const powerOfTen = (scale: number): bigint => 10n ** BigInt(scale);

export const floorDiv = (numerator: bigint, denominator: bigint): number => Number(numerator / denominator);

/** Rounds up; for numerators ≥ 0. */
const ceilDiv = (numerator: bigint, denominator: bigint): number =>
  Number((numerator + denominator - 1n) / denominator);

/**
 * Returns the thresholds in (previous, now], in the order of the triggers. Pure: however a phase is divided into steps, stops and
 * resumptions, each threshold is returned exactly once. The run time depends on the number of crossings, not of steps.
 *
 * - `previous` is null at the first progress of a phase; `start` is crossed there if no step was done yet.
 * - The k-th of `everyPercent(p)` is reached at step `ceil(k · p · maxSteps / 100)`, `k · p ≤ 100`, with p as its
 *   shortest decimal reads; the k-th of `timesPerPhase(n)` at `ceil(k · maxSteps / n)`. Both in exact integers.
 * - A threshold counts as crossed if it was reached at any progress so far under the maxSteps known then. So a phase that grows
 *   repeats none, and a phase that shrinks crosses at once all thresholds that its new length has passed. This needs the
 *   furthest share so far, which `advance` sets; without it only `previous` counts.
 * - While maxSteps is null no percent is crossed; once it is known, all percents passed so far are crossed together.
 * - `end` is crossed when training has ended and had not before, whatever the step.
 */
export function crossings(
  triggers: readonly Trigger[],
  previous: Progress | null,
  now: Progress,
): readonly Crossing[] {
  return triggers.flatMap((trigger) => crossingsOf(trigger, previous, now).map((at) => ({ trigger, at })));
}

/** Whether a threshold lies in (previous, now]. The run time does not depend on the number of crossings. */
export const isAnyCrossed = (
  triggers: readonly Trigger[],
  previous: Progress | null,
  now: Progress,
): boolean =>
  triggers.some((trigger) =>
    isRepeating(trigger)
      ? reachedCount(trigger, now) > reachedCount(trigger, previous)
      : crossingsOf(trigger, previous, now).length > 0,
  );

/** Whether a trigger counts seconds of training. */
export const isTimed = (triggers: readonly Trigger[]): boolean =>
  triggers.some((trigger) => "unit" in trigger && trigger.unit === "seconds");

/** Returns the next progress of a phase: `now`, with the furthest share so far. */
export function advance(previous: Progress | null, now: Omit<Progress, "furthest">): Progress {
  const { step, maxSteps, epoch, elapsedSeconds, ended } = now;
  const next = { step, maxSteps, epoch, elapsedSeconds, ended };
  const furthest = furthestOf(previous, next);
  return furthest === null ? next : { ...next, furthest };
}

/**
 * Returns the distinct steps at which these triggers have thresholds in a phase of `maxSteps`, ascending. Null if they cannot be
 * known: maxSteps is null, or a trigger counts epochs or seconds.
 */
export function plannedSteps(triggers: readonly Trigger[], maxSteps: number | null): number[] | null {
  if (maxSteps === null) return null;
  const steps = new Set<number>();
  for (const trigger of triggers) {
    if ("unit" in trigger && (trigger.unit === "epochs" || trigger.unit === "seconds")) return null;
    for (const step of stepsOf(trigger, maxSteps)) if (step <= maxSteps) steps.add(step);
  }
  return [...steps].sort((a, b) => a - b);
}

function crossingsOf(trigger: Trigger, previous: Progress | null, now: Progress): (number | null)[] {
  if (isEdge(trigger)) {
    if (trigger.at === "start") return previous === null && now.step === 0 ? [0] : [];
    return now.ended && previous?.ended !== true ? [null] : [];
  }
  if ("at" in trigger) {
    return distinct(trigger).filter((at) => !isReached(trigger, at, previous) && isReached(trigger, at, now));
  }
  const before = reachedCount(trigger, previous);
  const crossed = reachedCount(trigger, now) - before;
  if (crossed <= 0) return [];
  const unit = "every" in trigger ? decimalOf(trigger.every) : decimalOf(1);
  return Array.from({ length: crossed }, (_, i) => multipleOf(unit, before + i + 1));
}

type Every = Extract<Trigger, { every: number } | { times: number }>;
type AtList = Extract<Trigger, { at: readonly number[] }>;
type Edge = Extract<Trigger, { at: "start" | "end" }>;

const isRepeating = (trigger: Trigger): trigger is Every => "every" in trigger || "times" in trigger;

const isEdge = (trigger: Trigger): trigger is Edge => "at" in trigger && typeof trigger.at === "string";

const distinct = ({ at }: AtList): number[] => [...new Set(at)].sort((a, b) => a - b);

/** Returns how many thresholds of a repeating trigger lie at or before a progress. */
function reachedCount(trigger: Every, at: Progress | null): number {
  if (at === null) return 0;
  if ("every" in trigger && trigger.unit === "steps") return floorDiv(BigInt(at.step), BigInt(trigger.every));
  if ("every" in trigger && trigger.unit !== "percent") {
    const each = decimalOf(trigger.every);
    const total = decimalOf(trigger.unit === "epochs" ? at.epoch : at.elapsedSeconds);
    return floorDiv(total.numerator * powerOfTen(each.scale), each.numerator * powerOfTen(total.scale));
  }
  const share = furthestOf(null, at);
  if (share === null) return 0;
  const { perPhase, of, whole } = spacing(trigger);
  return Math.min(whole, floorDiv(BigInt(share.step) * perPhase, BigInt(share.maxSteps) * of));
}

/** A phase has `perPhase ÷ of` thresholds, rounded down to `whole`: 100 ÷ p for a percent, `times` for times per phase. */
interface Spacing {
  readonly perPhase: bigint;
  readonly of: bigint;
  readonly whole: number;
}

function spacing(trigger: Every): Spacing {
  const percent = "times" in trigger ? null : decimalOf(trigger.every);
  const perPhase = "times" in trigger ? BigInt(trigger.times) : 100n * powerOfTen(percent!.scale);
  const of = percent === null ? 1n : percent.numerator;
  return { perPhase, of, whole: floorDiv(perPhase, of) };
}

function isReached(trigger: AtList, threshold: number, at: Progress | null): boolean {
  if (at === null) return false;
  if (trigger.unit === "steps") return at.step >= threshold;
  const share = furthestOf(null, at);
  return share !== null && share.step >= stepAtPercent(threshold, share.maxSteps);
}

function stepAtPercent(percent: number, maxSteps: number): number {
  const { numerator, scale } = decimalOf(percent);
  return ceilDiv(numerator * BigInt(maxSteps), 100n * powerOfTen(scale));
}

type Share = NonNullable<Progress["furthest"]>;

/** Returns the larger share of the phase of two progresses. A phase of 0 steps counts as complete. */
function furthestOf(previous: Progress | null, now: Progress): Share | null {
  const before = larger(previous?.furthest ?? null, shareOf(previous));
  return larger(larger(before, now.furthest ?? null), shareOf(now));
}

function larger(a: Share | null, b: Share | null): Share | null {
  if (a === null || b === null) return a ?? b;
  return isLarger(b, a) ? b : a;
}

function shareOf(at: Progress | null): Share | null {
  if (at === null || at.maxSteps === null) return null;
  return at.maxSteps === 0 ? { step: 1, maxSteps: 1 } : { step: at.step, maxSteps: at.maxSteps };
}

/** Runs at every step, where maxSteps is nearly always the same. */
const isLarger = (a: Share, b: Share): boolean =>
  a.maxSteps === b.maxSteps
    ? a.step > b.step
    : BigInt(a.step) * BigInt(b.maxSteps) > BigInt(b.step) * BigInt(a.maxSteps);

function stepsOf(trigger: Trigger, maxSteps: number): number[] {
  if (isEdge(trigger)) return [trigger.at === "start" ? 0 : maxSteps];
  if ("at" in trigger) {
    return trigger.unit === "steps"
      ? [...trigger.at]
      : trigger.at.map((percent) => stepAtPercent(percent, maxSteps));
  }
  if ("every" in trigger && trigger.unit !== "percent") {
    return Array.from({ length: Math.floor(maxSteps / trigger.every) }, (_, i) => (i + 1) * trigger.every);
  }
  const { perPhase, of, whole } = spacing(trigger);
  return Array.from({ length: whole }, (_, i) => ceilDiv(BigInt(i + 1) * of * BigInt(maxSteps), perPhase));
}
