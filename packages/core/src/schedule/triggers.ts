import type { Crossing, Trigger } from "../contracts/schedule.ts";
import { checkTrigger } from "./check-triggers.ts";

/** Every `percent` of the phase's steps, up to 100; `0 < percent ≤ 100`. For thirds use `timesPerPhase(3)`: 100/3 has no decimal. */
export const everyPercent = (percent: number): Trigger =>
  checked("everyPercent", { every: percent, unit: "percent" });

/** `times` evenly spaced thresholds, the last at the end of the phase: the k-th at step `ceil(k · maxSteps / times)`. */
export const timesPerPhase = (times: number): Trigger => checked("timesPerPhase", { times, per: "phase" });

/** Every `steps` optimizer steps; a positive integer. */
export const everySteps = (steps: number): Trigger => checked("everySteps", { every: steps, unit: "steps" });

/** Every `epochs` passes over the data; fractions may be given. */
export const everyEpochs = (epochs: number): Trigger =>
  checked("everyEpochs", { every: epochs, unit: "epochs" });

/** Every `seconds` of training; where such a threshold falls differs from run to run. */
export const everySeconds = (seconds: number): Trigger =>
  checked("everySeconds", { every: seconds, unit: "seconds" });

/** At these percents of the phase's steps, each over 0 and at most 100. */
export const atPercents = (percents: readonly number[]): Trigger =>
  checked("atPercents", { at: percents, unit: "percent" });

/** At these steps, each a positive integer; step 0 is `atStart()`. */
export const atSteps = (steps: readonly number[]): Trigger =>
  checked("atSteps", { at: steps, unit: "steps" });

/** Before the first step. */
export const atStart = (): Trigger => ({ at: "start" });

/** When training ends, whatever step it reached. */
export const atEnd = (): Trigger => ({ at: "end" });

function checked(where: string, trigger: Trigger): Trigger {
  checkTrigger(trigger, where);
  return trigger;
}

/** Whether a trigger counts in shares of the phase, which do not fire while maxSteps is not known. */
export const needsMaxSteps = (triggers: readonly Trigger[]): boolean =>
  triggers.some((trigger) => "per" in trigger || ("unit" in trigger && trigger.unit === "percent"));

/** A crossing as snapshots record it: `every 20 percent: 40`, `5 times per phase: 2`, `at steps: 150`, `start`, `end`. */
export function describeCrossing({ trigger, at }: Crossing): string {
  if ("times" in trigger) return `${trigger.times} times per phase: ${at}`;
  if ("every" in trigger) return `every ${trigger.every} ${trigger.unit}: ${at}`;
  return "unit" in trigger ? `at ${trigger.unit}: ${at}` : trigger.at;
}
