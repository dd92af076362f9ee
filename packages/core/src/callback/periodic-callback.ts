import * as z from "zod";
import type {
  AnyEvaluation,
  Awaitable,
  CallbackContext,
  TrainerCallback,
  Trigger,
} from "@periodic-eval/contracts";
import { checkName, nameSchema, onSchema, parseOptions } from "@periodic-eval/contracts/options";
import { checkTriggers, atEnd, atStart, isEdge, needsMaxSteps } from "../schedule/triggers.ts";
import { crossings, plannedSteps } from "../schedule/crossings.ts";

export interface PeriodicOptions {
  /** When to measure: triggers such as `everyPercent(20)`. */
  readonly schedule: readonly Trigger[];
  /** Names the callback and its snapshots. Default: the evaluation's name. Matches `[A-Za-z0-9][\w.-]*`. */
  readonly id?: string;
  /** `"base"` measures the model without its adapter. Default `"model"`. */
  readonly on?: "model" | "base";
  /** Measures before the first step. Default true: this is the baseline of all comparisons. */
  readonly atStart?: boolean;
  /** Measures when training ends, unless its last step is already measured. Default true. */
  readonly atEnd?: boolean;
}

/** The schemas of `PeriodicOptions`. `checkTriggers` checks each trigger. */
export const periodicShape = {
  schedule: z
    .custom<readonly Trigger[]>(Array.isArray, "an array of triggers")
    .meta({ fix: "Put triggers into an array, such as [everyPercent(20)]." }),
  id: nameSchema.optional(),
  on: onSchema.optional(),
  atStart: z.boolean().optional(),
  atEnd: z.boolean().optional(),
} satisfies Record<keyof PeriodicOptions, z.ZodType>;

const periodicSchema = z.strictObject(periodicShape);

/**
 * A schedule and an evaluation: requests a measurement at each crossing. Several thresholds crossed at one step are one
 * measurement. The callback keeps no state: progress and snapshots say what was measured. Without an evaluation (null) it
 * measures nothing.
 *
 * @throws PeriodicEvalError `config` for a wrong or unknown option, an id that cannot be a file name, or an invalid trigger.
 */
export class PeriodicCallback implements TrainerCallback {
  readonly id: string;
  readonly asks: readonly AnyEvaluation[];
  readonly on: "model" | "base";
  /** The schedule, with start and end; empty without an evaluation. */
  readonly triggers: readonly Trigger[];
  readonly #evaluation: AnyEvaluation | null;
  #hasWarnedOfMaxSteps = false;
  #plan: { readonly maxSteps: number | null; readonly steps: readonly number[] | null } | null = null;

  constructor(evaluation: AnyEvaluation | null, options: PeriodicOptions) {
    const name = evaluation?.name ?? options.id ?? "";
    const where = `PeriodicCallback "${name}" options`;
    parseOptions(where, periodicSchema, options);
    const { schedule, id = name, on = "model" } = options;
    checkName(where, id, ["id"]);
    const triggers = checkTriggers(schedule, `${where}.schedule`);
    const has = (edge: "start" | "end") => triggers.some((trigger) => isEdge(trigger, edge));
    const planned = [
      ...((options.atStart ?? true) && !has("start") ? [atStart()] : []),
      ...triggers,
      ...((options.atEnd ?? true) && !has("end") ? [atEnd()] : []),
    ];
    this.triggers = evaluation === null ? [] : planned;
    this.id = id;
    this.asks = evaluation === null ? [] : [evaluation];
    this.on = on;
    this.#evaluation = evaluation;
  }

  onTrainBegin(context: CallbackContext): Awaitable<void> {
    this.#requestIfCrossed(context);
    if (context.progress.maxSteps !== null || !needsMaxSteps(this.triggers) || this.#hasWarnedOfMaxSteps)
      return;
    this.#hasWarnedOfMaxSteps = true;
    context.warn("maxSteps is unknown, so triggers in percent of the phase measure at its end only");
  }

  onStepEnd(context: CallbackContext): void {
    this.#requestIfCrossed(context);
  }

  onTrainEnd(context: CallbackContext): void {
    this.#requestIfCrossed(context);
  }

  async close(): Promise<void> {
    await this.#evaluation?.close?.();
  }

  #requestIfCrossed(context: CallbackContext): void {
    if (this.#evaluation === null || !this.#mayCross(context)) return;
    const crossed = crossings(this.triggers, context.previous, context.progress);
    if (crossed.length === 0) return;
    // The start is the baseline and is not compared with itself.
    const plannedComparisons =
      this.#plannedSteps(context.progress.maxSteps)?.filter((step) => step > 0).length ?? null;
    context.measure({ id: this.id, evaluation: this.#evaluation, crossed, on: this.on, plannedComparisons });
  }

  /** Returns false, at little cost, if the phase's length is unchanged and no step of the plan was reached: at nearly every step. */
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

/** Returns the first of ascending steps that is greater than `step`; infinity if there is none. */
function firstAfter(steps: readonly number[], step: number): number {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle]! > step) high = middle;
    else low = middle + 1;
  }
  return steps[low] ?? Number.POSITIVE_INFINITY;
}
