import type { Paired } from "@periodic-eval/core";
import type { CallbackCurves, Measurement } from "../charts/metric-curves.ts";
import { countText, edgeCounts } from "./count-text.ts";

/** How often the persona that was trained to have a trait shows it, at the start and at the end of a phase. */
export interface LeakageSource {
  readonly start: Measurement;
  readonly end: Measurement;
}

/** The source shows the trait if the whole 95 % interval of its rate is at or above this share. */
const shownFrom = 0.05;

/** Whether a metric is the rate of leakage or that of one persona. */
export const isLeakageRate = (metric: string): boolean => /^leakage_rate(\/|$)/.test(metric);

/** Returns the source's rate in a phase, for a metric of leakage that does not count the source; null for others. */
export function sourceOf(
  { companions }: CallbackCurves,
  metric: string,
  phaseIndex: number,
): LeakageSource | null {
  const curve = companions.find((one) => one.metric === "source_rate");
  const measurements = curve?.measurements.filter((one) => one.phaseIndex === phaseIndex) ?? [];
  const [start, end] = [measurements.at(0), measurements.at(-1)];
  return isLeakageRate(metric) && start && end ? { start, end } : null;
}

/**
 * Returns why leakage cannot be judged: the source itself does not show the trait, and no other persona began to. Null if it can.
 *
 * @param others The first measurement of the other personas in the phase, and how their rate changed since.
 */
export function sourceReason(
  source: LeakageSource | null,
  others: { readonly start: Measurement; readonly change: Paired | null },
): string | null {
  if (source === null || source.end.value === null || isShown(source.end)) return null;
  if (others.change?.verdict === "worse") return null;
  return hasLostTrait(source, others.start)
    ? `The source itself lost the trait: ${edgeCounts(source, "share", " answers")}; leakage cannot be judged any more.`
    : `The source shows the trait in ${countText(source.end, "share")} answers: leakage cannot be judged yet.`;
}

/** Whether the source had the trait at the start and does not show it at the end. That it had it can also show in the other personas. */
export function hasLostTrait({ start, end }: LeakageSource, others: Measurement): boolean {
  if (start.value === null || end.value === null || isShown(end)) return false;
  return isShown(start) || (start.value > end.value && isShown(others));
}

const isShown = ({ ci95 }: Measurement): boolean => (ci95?.[0] ?? 0) >= shownFrom;
