import type { CallbackCurves, Measurement } from "../charts/metric-curves.ts";

/** How often the persona that was trained to have a trait shows it, at the start and at the end of a phase. */
export interface LeakageSource {
  readonly start: Measurement;
  readonly end: Measurement;
}

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
