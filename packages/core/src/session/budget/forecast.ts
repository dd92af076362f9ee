import type { TrainerCallback } from "../../contracts/callback.ts";
import type { Progress, Trigger } from "../../contracts/schedule.ts";
import { plannedSteps } from "../../schedule/crossings.ts";
import type { Learned } from "./learned.ts";
import type { MeasurementCost, MeasurementTime } from "./measurement-costs.ts";
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
 * @param current The id that is being measured, and its items so far, which count as learned.
 */
export function secondsOfEnd(
  forecast: Forecast,
  current: { readonly id: string; readonly and: MeasurementTime | null },
): { readonly expected: number; readonly doubtful: number } {
  const { at, callbacks, learned } = forecast;
  let expected = 0;
  let doubtful = 0;
  for (const { id, triggers = [] } of callbacks) {
    const items = learned.size(id);
    const cost =
      items === undefined ? null : learned.endCost(id, items, id === current.id ? current.and : null);
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
 * Returns the measurements that other callbacks will still request.
 *
 * @param pending Ids that the open window has still to measure; they count too.
 */
export function otherMeasurements(
  forecast: Forecast,
  id: string,
  projected: number,
  pending: ReadonlySet<string>,
): readonly Wanted[] {
  const { callbacks, learned } = forecast;
  return callbacks.flatMap((callback) => {
    if (callback.id === id) return [];
    const cost = learned.cost(callback.id);
    const items = learned.size(callback.id);
    if (cost === null || items === undefined) return [];
    const wanted = measurementsOf(forecast, callback.id, cost, projected);
    const measurements = wanted.measurements - (pending.has(callback.id) ? 0 : 1);
    return measurements > 0 ? [{ ...wanted, items, measurements }] : [];
  });
}

/** Returns the measurements of an id from now until before the end, one at this step included. */
export function measurementsOf(
  { at: { step, maxSteps, elapsedSeconds }, callbacks, learned }: Forecast,
  id: string,
  { fixed, perItem }: MeasurementCost,
  projected: number,
): Omit<Wanted, "items"> {
  const { triggers = [] } = callbacks.find((callback) => callback.id === id) ?? {};
  const planned = plannedSteps(triggers, maxSteps)?.filter((one) => one > step && one < maxSteps!).length;
  // Without a schedule, requests are expected to come as often as before.
  const asBefore = learned.requested(id) * Math.max(0, projected / elapsedSeconds - 1);
  const ahead =
    triggers.length > 0 && planned !== undefined
      ? planned
      : Number.isFinite(asBefore)
        ? Math.floor(asBefore)
        : 0;
  return { id, fixed, perItem, measurements: ahead + 1 };
}

export function isEdge(trigger: Trigger, edge: "start" | "end"): boolean {
  return "at" in trigger && trigger.at === edge;
}
