import { checkKeys } from "../internal/check-keys.ts";
import { quoteValue } from "../internal/quote-value.ts";
import { checkWord } from "../internal/check-word.ts";
import { PeriodicEvalError } from "../errors.ts";
import { isCount } from "../internal/is-count.ts";
import type { Trigger } from "../contracts/schedule.ts";

/**
 * Returns the triggers where each is one, as built by this module's neighbours or read from YAML. Throws `config`
 * naming the place, what stood there and, for a wrong key or unit, the nearest right one.
 */
export function checkTriggers(triggers: unknown, where: string): readonly Trigger[] {
  if (!Array.isArray(triggers))
    throw wrong(where, triggers, "a list of triggers", "Write [everyPercent(20)].");
  triggers.forEach((trigger, i) => checkTrigger(trigger, triggers.length === 1 ? where : `${where}[${i}]`));
  return triggers as readonly Trigger[];
}

const unitsOf = { every: ["percent", "steps", "epochs", "seconds"], at: ["percent", "steps"] } as const;

function checkTrigger(trigger: unknown, where: string): void {
  if (trigger === null || typeof trigger !== "object" || Array.isArray(trigger)) {
    throw wrong(where, trigger, "a trigger", 'Write everyPercent(20), or { every: 20, unit: "percent" }.');
  }
  const { every, at, times, unit, per } = trigger as Readonly<Record<string, unknown>>;
  if ("every" in trigger) {
    checkKeys(where, trigger, ["every", "unit"]);
    checkWord(`${where}.unit`, unit, unitsOf.every);
    checkAmount(every, unit, `${where}.every`);
  } else if ("times" in trigger) {
    checkKeys(where, trigger, ["times", "per"]);
    checkWord(`${where}.per`, per, ["phase"]);
    if (!isCount(times, 1))
      throw wrong(`${where}.times`, times, "a positive integer", "Say how many times a phase.");
  } else if (Array.isArray(at)) {
    checkKeys(where, trigger, ["at", "unit"]);
    checkWord(`${where}.unit`, unit, unitsOf.at);
    if (at.length === 0)
      throw wrong(`${where}.at`, at, "at least one number", "Name a threshold, or leave the trigger out.");
    at.forEach((amount, i) => checkAmount(amount, unit, `${where}.at[${i}]`));
  } else {
    checkKeys(where, trigger, "at" in trigger ? ["at"] : ["every", "at", "times", "unit", "per"]);
    checkWord(`${where}.at`, at, ["start", "end"]);
  }
}

function checkAmount(amount: unknown, unit: unknown, where: string): void {
  const isPositive = typeof amount === "number" && Number.isFinite(amount) && amount > 0;
  if (unit === "steps" && !isCount(amount, 1)) {
    throw wrong(
      where,
      amount,
      "a positive integer",
      amount === 0 ? "Use atStart() for step 0." : "Count whole steps.",
    );
  }
  if (unit === "percent" && !(isPositive && amount <= 100)) {
    throw wrong(where, amount, "a number over 0 and at most 100", "Give percents of the phase's steps.");
  }
  if (!isPositive) throw wrong(where, amount, "a finite number over 0", `Give a number of ${String(unit)}.`);
}

const wrong = (where: string, got: unknown, expected: string, fix: string) =>
  new PeriodicEvalError({ code: "config", where, got: quoteValue(got), expected, fix });
