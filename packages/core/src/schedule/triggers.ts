import * as z from "zod";
import type { Crossing, Trigger, ValuePath } from "@periodic-eval/contracts";
import {
  configError,
  isRecord,
  nearest,
  parseOptions,
  positiveInteger,
} from "@periodic-eval/contracts/options";

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

/**
 * Checks a schedule, as the functions of `triggers.ts` build it or as YAML holds it, and returns it.
 *
 * @param where Names the options that hold the schedule.
 * @param path Where the schedule is within those options.
 * @throws PeriodicEvalError `config`
 */
export function checkTriggers(triggers: unknown, where: string, path: ValuePath = []): readonly Trigger[] {
  if (!Array.isArray(triggers))
    throw configError({
      where,
      path,
      value: triggers,
      expected: "an array of triggers",
      fix: "Write [everyPercent(20)].",
    });
  for (const [index, trigger] of triggers.entries()) checkTrigger(trigger, where, [...path, index]);
  return triggers as readonly Trigger[];
}

function checkTrigger(trigger: unknown, where: string, path: ValuePath = []): void {
  if (!isRecord(trigger))
    throw configError({
      where,
      path,
      value: trigger,
      expected: "a trigger",
      fix: 'Write everyPercent(20), or { every: 20, unit: "percent" }.',
    });
  checkUnit(trigger, where, path);
  parseOptions(where, schemaOf(trigger), trigger, path);
}

export function isTrigger(value: unknown): value is Trigger {
  try {
    checkTrigger(value, "trigger");
    return true;
  } catch {
    return false;
  }
}

const positiveSchema = z.number("a finite number above 0").positive("a finite number above 0");

/** Shorter intervals cross thousands of thresholds at each step, or in each second. */
export const shortestIntervals = { percent: 0.001, epochs: 0.001, seconds: 0.001 };
export const mostTimesPerPhase = 100_000;

/** Returns the check of an interval in a unit, after that of its amount. */
const intervalSchema = (unit: unknown, amount: z.ZodType): z.ZodType => {
  const shortest = shortestIntervals[unit as keyof typeof shortestIntervals] ?? 0;
  const isLong = (value: unknown) => !(typeof value === "number" && value > 0 && value < shortest);
  return amount.refine(isLong, { error: `at least ${shortest} ${unit as string}` });
};
const amountSchemas: Readonly<Record<string, z.ZodType>> = {
  percent: z
    .number("a number above 0 and at most 100")
    .positive("a number above 0 and at most 100")
    .max(100, "a number above 0 and at most 100")
    .meta({ fix: "Give percents of the phase's steps." }),
  steps: positiveInteger.meta({ fix: "Count optimizer steps. Use atStart() for step 0." }),
  epochs: positiveSchema.meta({ fix: "Give a number of epochs." }),
  seconds: positiveSchema.meta({ fix: "Give a number of seconds." }),
};

const unitsOf = { every: ["percent", "steps", "epochs", "seconds"], at: ["percent", "steps"] } as const;

/** Checks the unit before the amount, whose range depends on it. */
function checkUnit(trigger: Readonly<Record<string, unknown>>, where: string, path: ValuePath): void {
  const units: readonly string[] | null =
    "every" in trigger ? unitsOf.every : Array.isArray(trigger["at"]) ? unitsOf.at : null;
  const unit = trigger["unit"];
  if (units === null || unit === undefined || units.includes(unit as string)) return;
  const close = typeof unit === "string" ? nearest(unit, units) : null;
  throw configError({
    where,
    path: [...path, "unit"],
    value: unit,
    expected: units.map((one) => `"${one}"`).join(" or "),
    fix: `Write "${close ?? units[0]}".`,
  });
}

/** Returns the schema of the kind of trigger that a value looks like. */
function schemaOf(trigger: Readonly<Record<string, unknown>>): z.ZodType {
  const amount = amountSchemas[String(trigger["unit"])] ?? z.unknown();
  if ("every" in trigger)
    return z.strictObject({ every: intervalSchema(trigger["unit"], amount), unit: z.enum(unitsOf.every) });
  if ("times" in trigger) return timesSchema;
  if (Array.isArray(trigger["at"])) {
    const fix = "Name a threshold, or leave the trigger out.";
    const at = z.array(amount).min(1, "at least one number").meta({ fix });
    return z.strictObject({ at, unit: z.enum(unitsOf.at) });
  }
  return "at" in trigger ? z.strictObject({ at: edgeSchema }) : unknownTriggerSchema;
}

const edgeSchema = z.enum(["start", "end"]);
const timesSchema = z.strictObject({
  times: positiveInteger
    .refine((times) => times <= mostTimesPerPhase, { error: `at most ${mostTimesPerPhase} times` })
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
