import * as z from "zod";
import type { Crossing, Trigger } from "@periodic-eval/contracts";
import { isRecord, nearest, parseOptions, positiveInteger } from "@periodic-eval/contracts/options";

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
  return parseOptions(where, schemaOf(trigger), trigger) as Trigger;
}

/** Whether a trigger is relative to the length of the phase. Such triggers have no crossings while maxSteps is unknown. */
export const needsMaxSteps = (triggers: readonly Trigger[]): boolean =>
  triggers.some((trigger) => "per" in trigger || ("unit" in trigger && trigger.unit === "percent"));

/** Whether a trigger is the start, or the end, of a phase. */
export const isEdge = (trigger: Trigger, edge: "start" | "end"): boolean =>
  "at" in trigger && trigger.at === edge;

/** Describes a crossing as snapshots record it: `every 20 percent: 40`, `5 times per phase: 2`, `at steps: 150`, `start`, `end`. */
export function describeCrossing({ trigger, at }: Crossing): string {
  if ("times" in trigger) return `${trigger.times} times per phase: ${at}`;
  if ("every" in trigger) return `every ${trigger.every} ${trigger.unit}: ${at}`;
  return "unit" in trigger ? `at ${trigger.unit}: ${at}` : trigger.at;
}

/**
 * Checks the triggers of a schedule and returns them.
 *
 * @param where Names the options that hold the schedule.
 * @throws PeriodicEvalError `config`
 */
export function checkTriggers(triggers: readonly unknown[], where: string): readonly Trigger[] {
  for (const [index, trigger] of triggers.entries()) parseOptions(where, schemaOf(trigger), trigger, [index]);
  return triggers as readonly Trigger[];
}

export const triggerSchema = z.custom<Trigger>(
  (value) => schemaOf(value).safeParse(value).success,
  "a trigger",
);

/** Shorter intervals cross thousands of thresholds at each step, or in each second. */
export const shortestIntervals = { percent: 0.001, epochs: 0.001, seconds: 0.001 };
export const mostTimesPerPhase = 100_000;

const percentText = "a number above 0 and at most 100";
const percentFix = { fix: "Give percents of the phase's steps." };
export const percentSchema = z.number(percentText).positive(percentText).max(100, percentText);
const atLeast = (unit: keyof typeof shortestIntervals) =>
  [shortestIntervals[unit], `at least ${shortestIntervals[unit]} ${unit}`] as const;
const interval = (unit: "epochs" | "seconds") =>
  z
    .number("a finite number above 0")
    .positive("a finite number above 0")
    .min(...atLeast(unit))
    .meta({ fix: `Give a number of ${unit}.` });
const steps = positiveInteger.meta({ fix: "Count optimizer steps. Use atStart() for step 0." });

/** The amounts of each unit. */
type Amounts = Readonly<Record<string, z.ZodType>>;
const listed: Amounts = { percent: percentSchema.meta(percentFix), steps };
const repeated: Amounts = {
  percent: percentSchema.min(...atLeast("percent")).meta(percentFix),
  steps,
  epochs: interval("epochs"),
  seconds: interval("seconds"),
};

/** Returns the schema of the kind of trigger that a value looks like. An unknown unit is the first error: the amount depends on it. */
function schemaOf(trigger: unknown): z.ZodType {
  if (!isRecord(trigger)) return anyTrigger;
  const { unit } = trigger;
  const amountIn = (amounts: Amounts) => amounts[String(unit)] ?? z.unknown();
  const unitIn = (amounts: Amounts) => {
    const units = Object.keys(amounts);
    const close = typeof unit === "string" ? nearest(unit, units) : null;
    return z.enum(units).meta({ fix: `Write "${close ?? units[0]}".` });
  };
  if ("every" in trigger) return z.strictObject({ every: amountIn(repeated), unit: unitIn(repeated) });
  if ("times" in trigger) return timesSchema;
  if (Array.isArray(trigger["at"])) {
    const fix = "Name a threshold, or leave the trigger out.";
    const at = z.array(amountIn(listed)).min(1, "at least one number").meta({ fix });
    return z.strictObject({ at, unit: unitIn(listed) });
  }
  return "at" in trigger ? z.strictObject({ at: edgeSchema }) : unknownTriggerSchema;
}

const anyTrigger = z
  .custom(isRecord, "a trigger")
  .meta({ fix: 'Write everyPercent(20), or { every: 20, unit: "percent" }.' });
const edgeSchema = z.enum(["start", "end"]);
const timesSchema = z.strictObject({
  times: positiveInteger
    .max(mostTimesPerPhase, `at most ${mostTimesPerPhase} times`)
    .meta({ fix: "Give the number of measurements in a phase." }),
  per: z.literal("phase"),
});
/** Names all keys of triggers in its error. */
const unknownTriggerSchema = z.strictObject({
  every: z.unknown().optional(),
  at: edgeSchema,
  times: z.unknown().optional(),
  unit: z.unknown().optional(),
  per: z.unknown().optional(),
});
