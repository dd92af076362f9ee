import { decimalOf, ceilDiv, floorDiv, multipleOf, powerOfTen } from "./rational.ts";
import type { Crossing, Progress, Trigger } from "./types.ts";

/**
 * The thresholds in (previous, now], in the order of the triggers. Pure: for any cutting of a phase into progresses,
 * stops and resumptions, each threshold is in exactly one of the answers. It takes time for what fires, not for steps.
 *
 * - `previous` is null at the first progress of a phase, where `start` fires if no step was done yet.
 * - The k-th of `everyPercent(p)` is reached at step `ceil(k · p · maxSteps / 100)`, `k · p ≤ 100`, with p as its
 *   shortest decimal reads; the k-th of `timesPerPhase(n)` at `ceil(k · maxSteps / n)`. Both in exact integers.
 * - A threshold counts as crossed if it was reached at any progress so far under the maxSteps known then. So a phase
 *   that grows repeats none, and one that shrinks fires at once all that its new length has passed. That needs the
 *   furthest share so far, which progresses made by `advance` carry; without it only `previous` is known.
 * - While maxSteps is null no percent fires; once known, all that were passed fire together.
 * - `end` fires when training has ended and had not before, whatever the step.
 */
export function crossings(
  triggers: readonly Trigger[],
  previous: Progress | null,
  now: Progress,
): readonly Crossing[] {
  return triggers.flatMap((trigger) => crossingsOf(trigger, previous, now).map((at) => ({ trigger, at })));
}

/** The next progress of a phase: `now`, and the furthest share so far carried on. */
export function advance(previous: Progress | null, now: Omit<Progress, "furthest">): Progress {
  const { step, maxSteps, epoch, elapsedSeconds, ended } = now;
  const plain = { step, maxSteps, epoch, elapsedSeconds, ended };
  const furthest = furthestOf(previous, plain);
  return furthest === null ? plain : { ...plain, furthest };
}

/**
 * The distinct steps at which these triggers fire in a phase of `maxSteps`, ascending. Null where they cannot be known:
 * maxSteps is null, or a trigger goes by epochs or seconds.
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
  const fired = Math.max(0, reachedCount(trigger, now) - before);
  const unit = "every" in trigger ? decimalOf(trigger.every) : decimalOf(1);
  return Array.from({ length: fired }, (_, i) => multipleOf(unit, before + i + 1));
}

type Every = Extract<Trigger, { every: number } | { times: number }>;
type AtList = Extract<Trigger, { at: readonly number[] }>;
type Edge = Extract<Trigger, { at: "start" | "end" }>;

const isEdge = (trigger: Trigger): trigger is Edge => "at" in trigger && typeof trigger.at === "string";

const distinct = ({ at }: AtList): number[] => [...new Set(at)].sort((a, b) => a - b);

/** How many thresholds of a repeating trigger lie at or before a progress. */
function reachedCount(trigger: Every, at: Progress | null): number {
  if (at === null) return 0;
  if ("every" in trigger && trigger.unit !== "percent") {
    const passed =
      trigger.unit === "steps" ? at.step : trigger.unit === "epochs" ? at.epoch : at.elapsedSeconds;
    const [each, total] = [decimalOf(trigger.every), decimalOf(passed)];
    return floorDiv(total.numerator * powerOfTen(each.scale), each.numerator * powerOfTen(total.scale));
  }
  const share = furthestOf(null, at);
  if (share === null) return 0;
  const { perPhase, of } = spacing(trigger);
  const whole = floorDiv(perPhase, of);
  return Math.min(whole, floorDiv(BigInt(share.step) * perPhase, BigInt(share.maxSteps) * of));
}

/** `perPhase ÷ of` thresholds make a whole phase: 100 ÷ p for a percent, the number of times itself. */
function spacing(trigger: Every): { readonly perPhase: bigint; readonly of: bigint } {
  if ("times" in trigger) return { perPhase: BigInt(trigger.times), of: 1n };
  const percent = decimalOf(trigger.every);
  return { perPhase: 100n * powerOfTen(percent.scale), of: percent.numerator };
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

/** The larger share of the phase of two progresses; a phase of no steps counts as whole. */
function furthestOf(previous: Progress | null, now: Progress): Share | null {
  const shares = [previous?.furthest, own(previous), now.furthest, own(now)].filter(
    (share) => share !== undefined,
  );
  return shares.reduce<Share | null>(
    (most, share) => (most === null || isLarger(share, most) ? share : most),
    null,
  );
}

function own(at: Progress | null): Share | undefined {
  if (at === null || at.maxSteps === null) return undefined;
  return at.maxSteps === 0 ? { step: 1, maxSteps: 1 } : { step: at.step, maxSteps: at.maxSteps };
}

/** Asked at every step, where the number of steps is nearly always the same. */
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
  const { perPhase, of } = spacing(trigger);
  const count = floorDiv(perPhase, of);
  return Array.from({ length: count }, (_, i) => ceilDiv(BigInt(i + 1) * of * BigInt(maxSteps), perPhase));
}
