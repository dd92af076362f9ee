import { checkKeys } from "../internal/check-keys.ts";
import { quoteValue } from "../internal/quote-value.ts";
import { checkWord } from "../internal/check-word.ts";
import { PeriodicEvalError } from "../errors.ts";
import type { AnyEvaluation } from "../contracts/evaluation.ts";
import { checkName } from "../internal/names.ts";
import { checkTriggers } from "../schedule/check-triggers.ts";
import { crossings, plannedSteps } from "../schedule/crossings.ts";
import { atEnd, atStart, needsMaxSteps } from "../schedule/triggers.ts";
import type { Trigger } from "../contracts/schedule.ts";
import type { CallbackContext, TrainerCallback } from "../contracts/callback.ts";

export interface PeriodicOptions {
  /** When to measure; see `everyPercent` and its neighbours. */
  readonly schedule: readonly Trigger[];
  /** Names the callback and its snapshots; default the evaluation's name. Matches `[A-Za-z0-9][\w.-]*`. */
  readonly id?: string;
  /** `"base"` measures the model without its adapter; default `"model"`. */
  readonly on?: "model" | "base";
  /** Where a data file is missing: one warning and `skipped` records instead of an error before step 1. Default false. */
  readonly optional?: boolean;
  /** Measure before the first step; default true. The baseline of all comparisons. */
  readonly atStart?: boolean;
  /** Measure when training ends, unless its last step has its measurement; default true. */
  readonly atEnd?: boolean;
}

/** The options of `PeriodicOptions`, for callbacks that add their own. */
export const periodicOptionNames = ["schedule", "id", "on", "optional", "atStart", "atEnd"] as const;

/**
 * Schedule × evaluation: asks for the measurement whenever a threshold of the schedule is crossed. Several crossed at
 * one step are one firing. It holds no state: what was fired is read from the progress and the snapshots.
 *
 * @throws PeriodicEvalError `config` for an unknown option or a wrong value of one, an id that cannot name a file, or an
 * invalid trigger.
 */
export class PeriodicCallback implements TrainerCallback {
  readonly id: string;
  readonly asks: readonly AnyEvaluation[];
  readonly on: "model" | "base";
  readonly optional: boolean;
  /** The schedule with its start and end. */
  readonly triggers: readonly Trigger[];
  readonly #evaluation: AnyEvaluation;
  #warnedOfMaxSteps = false;
  #plan: { readonly maxSteps: number | null; readonly steps: readonly number[] | null } | null = null;

  constructor(evaluation: AnyEvaluation, options: PeriodicOptions) {
    const where = `PeriodicCallback of "${evaluation.name}"`;
    checkKeys(where, options, periodicOptionNames);
    const { schedule, id = evaluation.name, on = "model", optional = false } = options;
    checkName(`${where} id`, id);
    checkWord(`${where} on`, on, ["model", "base"]);
    for (const name of ["optional", "atStart", "atEnd"] as const) {
      if (options[name] === undefined || typeof options[name] === "boolean") continue;
      throw new PeriodicEvalError({
        code: "config",
        where: `${where} ${name}`,
        got: quoteValue(options[name]),
        expected: "true or false",
        fix: "Write it without quotes.",
      });
    }
    const own = checkTriggers(schedule, `${where} schedule`);
    const has = (edge: "start" | "end") => own.some((trigger) => "at" in trigger && trigger.at === edge);
    this.triggers = [
      ...((options.atStart ?? true) && !has("start") ? [atStart()] : []),
      ...own,
      ...((options.atEnd ?? true) && !has("end") ? [atEnd()] : []),
    ];
    this.id = id;
    this.asks = [evaluation];
    this.on = on;
    this.optional = optional;
    this.#evaluation = evaluation;
  }

  onTrainBegin(context: CallbackContext): void {
    this.#ask(context);
    if (context.progress.maxSteps !== null || !needsMaxSteps(this.triggers) || this.#warnedOfMaxSteps) return;
    this.#warnedOfMaxSteps = true;
    context.warn("percents of the phase do not fire while its number of steps (maxSteps) is not known");
  }

  onStepEnd(context: CallbackContext): void {
    this.#ask(context);
  }

  onTrainEnd(context: CallbackContext): void {
    this.#ask(context);
  }

  #ask(context: CallbackContext): void {
    if (!this.#mayCross(context)) return;
    const crossed = crossings(this.triggers, context.previous, context.progress);
    if (crossed.length === 0) return;
    // The start is the baseline, and is not compared with itself.
    const plannedComparisons =
      this.#plannedSteps(context.progress.maxSteps)?.filter((step) => step > 0).length ?? null;
    context.measure({ id: this.id, evaluation: this.#evaluation, crossed, on: this.on, plannedComparisons });
  }

  /** False where the plan of a phase whose length did not change has no step here: nearly always, and at no cost. */
  #mayCross({ previous, progress }: CallbackContext): boolean {
    const { step, maxSteps, ended } = progress;
    if (previous === null || ended || maxSteps === null || previous.maxSteps !== maxSteps || step > maxSteps)
      return true;
    const steps = this.#plannedSteps(maxSteps);
    return steps === null || firstAfter(steps, previous.step) <= step;
  }

  #plannedSteps(maxSteps: number | null): readonly number[] | null {
    if (this.#plan === null || this.#plan.maxSteps !== maxSteps)
      this.#plan = { maxSteps, steps: plannedSteps(this.triggers, maxSteps) };
    return this.#plan.steps;
  }
}

/** The first of rising steps that is greater, infinity where none is. */
function firstAfter(steps: readonly number[], step: number): number {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle]! > step) high = middle;
    else low = middle + 1;
  }
  return steps[low] ?? Number.POSITIVE_INFINITY;
}
