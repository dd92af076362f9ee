import type { TrainerCallback, Progress, Trigger } from "@periodic-eval/contracts";
import { plannedSteps } from "../../schedule/crossings.ts";
import type { Learned, MeasurementTime } from "./learned.ts";
import type { Wanted } from "./share-seconds.ts";

/** The first step of a session compiles: while it is the only one known, other steps are assumed to take a tenth of it. */
const firstStepShare = 0.1;

/** The point of the phase from which the rest is predicted. */
export interface Forecast {
  readonly at: Progress;
  readonly callbacks: readonly TrainerCallback[];
  readonly learned: Learned;
}

/** Returns the training seconds of the whole phase if its length is known, else `trained`, the seconds so far. */
export function projectSeconds({ at: { step, maxSteps }, learned }: Forecast, trained: number): number {
  if (maxSteps === null || step === 0) return trained;
  const { steps, seconds } = learned.firstStep ?? { steps: 0, seconds: 0 };
  const perStep = step > steps ? (trained - seconds) / (step - steps) : firstStepShare * (trained / step);
  return trained + Math.max(0, maxSteps - step) * Math.max(0, perStep);
}

/**
 * Returns the seconds that the measurements at the end will take: those expected, and those that may come on top.
 *
 * @param current The id that is being measured, and its rows so far, which count as learned; null between measurements.
 */
export function secondsOfEnd(
  forecast: Forecast,
  current: { readonly id: string; readonly and: MeasurementTime | null } | null,
): { readonly expected: number; readonly doubtful: number } {
  const { at, callbacks, learned } = forecast;
  let expected = 0;
  let doubtful = 0;
  for (const { id, triggers = [] } of callbacks) {
    const size = learned.sizes.get(id);
    const and = id === current?.id ? current.and : null;
    const cost = size === undefined ? null : learned.endCost(id, size.whole, and);
    if (cost === null) continue;
    const isAtEnd =
      triggers.some((trigger) => isEdge(trigger, "end")) ||
      plannedSteps(triggers, at.maxSteps)?.at(-1) === at.maxSteps;
    if (!isAtEnd) continue;
    expected += cost.expected;
    doubtful += cost.doubtful;
  }
  return { expected, doubtful };
}

/**
 * Returns the measurements still to come between now and the end, of all callbacks whose cost is known.
 *
 * @param now Ids to be measured at this step; they count too.
 * @param current The id that is being measured, and its rows so far, which count as learned; null between measurements.
 */
export function measurementsAhead(
  forecast: Forecast,
  projected: number,
  now: ReadonlySet<string>,
  current: { readonly id: string; readonly and: MeasurementTime | null } | null = null,
): readonly Wanted[] {
  const { callbacks, learned } = forecast;
  return callbacks.flatMap((callback) => {
    const { id } = callback;
    const cost = learned.cost(id, id === current?.id ? current.and : null);
    const size = learned.sizes.get(id);
    if (cost === null || size === undefined) return [];
    const measurements = countAhead(forecast, callback, projected) + (now.has(id) ? 1 : 0);
    return measurements > 0 ? [{ id, size, measurements, ...cost }] : [];
  });
}

/** Returns how many measurements of a callback come after this step and before the end. */
function countAhead(
  { at, learned }: Forecast,
  { id, triggers = [] }: TrainerCallback,
  projected: number,
): number {
  const { maxSteps, elapsedSeconds } = at;
  const ahead = (some: readonly Trigger[], from: number) =>
    plannedSteps(some, maxSteps)?.filter((one) => one > from && one < maxSteps!);
  const steps = ahead(
    triggers.filter((one) => !isRelative(one)),
    at.step,
  );
  const percents = ahead(triggers.filter(isRelative), reachedStep(at));
  if (triggers.length > 0 && steps !== undefined) return new Set([...steps, ...percents!]).size;
  // Without a schedule, requests are expected to come as often as before.
  const asBefore = (learned.requested.get(id) ?? 0) * Math.max(0, projected / elapsedSeconds - 1);
  return Number.isFinite(asBefore) ? Math.floor(asBefore) : 0;
}

/** Whether the thresholds of a trigger are shares of the phase. */
const isRelative = (trigger: Trigger): boolean =>
  "times" in trigger || ("unit" in trigger && trigger.unit === "percent");

/** Returns the step up to which shares of the phase were crossed: further than now if the phase has grown since. */
function reachedStep({ step, maxSteps, furthest }: Progress): number {
  if (maxSteps === null || furthest == null) return step;
  return Math.max(step, Math.ceil((furthest.step * maxSteps) / furthest.maxSteps));
}

export function isEdge(trigger: Trigger, edge: "start" | "end"): boolean {
  return "at" in trigger && trigger.at === edge;
}
