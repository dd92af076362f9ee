import type { Crossing, Trigger } from "@periodic-eval/contracts";
import { checkTrigger } from "./check-triggers.ts";

/** Measures every `percent` of the phase's steps; `0 < percent ≤ 100`. For thirds use `timesPerPhase(3)`: 100/3 is no decimal. */
export const everyPercent = (percent: number): Trigger =>
  checked("everyPercent", { every: percent, unit: "percent" });

/** Measures `times` times, evenly spaced, the last at the end of the phase: the k-th at step `ceil(k · maxSteps / times)`. */
export const timesPerPhase = (times: number): Trigger => checked("timesPerPhase", { times, per: "phase" });

/** Measures every `steps` optimizer steps; a positive integer. */
export const everySteps = (steps: number): Trigger => checked("everySteps", { every: steps, unit: "steps" });

/** Measures every `epochs` passes over the data; may be a fraction. */
export const everyEpochs = (epochs: number): Trigger =>
  checked("everyEpochs", { every: epochs, unit: "epochs" });

/** Measures every `seconds` of training, at steps that differ from run to run. */
export const everySeconds = (seconds: number): Trigger =>
  checked("everySeconds", { every: seconds, unit: "seconds" });

/** Measures at these percents of the phase's steps, each above 0 and at most 100. */
export const atPercents = (percents: readonly number[]): Trigger =>
  checked("atPercents", { at: percents, unit: "percent" });

/** Measures at these steps, each a positive integer; for step 0 use `atStart()`. */
export const atSteps = (steps: readonly number[]): Trigger =>
  checked("atSteps", { at: steps, unit: "steps" });

/** Measures before the first step. */
export const atStart = (): Trigger => ({ at: "start" });

/** Measures when training ends, whatever step it reached. */
export const atEnd = (): Trigger => ({ at: "end" });

function checked(where: string, trigger: Trigger): Trigger {
  checkTrigger(trigger, where);
  return trigger;
}

/** Whether a trigger is relative to the length of the phase. Such triggers have no crossings while maxSteps is unknown. */
export const needsMaxSteps = (triggers: readonly Trigger[]): boolean =>
  triggers.some((trigger) => "per" in trigger || ("unit" in trigger && trigger.unit === "percent"));

/** Describes a crossing as snapshots record it: `every 20 percent: 40`, `5 times per phase: 2`, `at steps: 150`, `start`, `end`. */
export function describeCrossing({ trigger, at }: Crossing): string {
  if ("times" in trigger) return `${trigger.times} times per phase: ${at}`;
  if ("every" in trigger) return `every ${trigger.every} ${trigger.unit}: ${at}`;
  return "unit" in trigger ? `at ${trigger.unit}: ${at}` : trigger.at;
}
