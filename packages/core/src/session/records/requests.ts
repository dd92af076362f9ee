import * as z from "zod";
import type { MeasureRequest, TrainerCallback } from "@periodic-eval/contracts";
import { configError, isCount, parseOptions, nameSchema, onSchema } from "@periodic-eval/contracts/options";
import { isEdge, triggerSchema } from "../../schedule/triggers.ts";
import type { Requested } from "./new-snapshot.ts";

/** The parts of a request that can be wrong; `evaluation` is checked when it is prepared. */
const requestSchema = z.object({
  id: nameSchema,
  on: onSchema.optional(),
  evaluation: z.looseObject({}, "an evaluation"),
  crossed: z.array(z.looseObject({ trigger: triggerSchema }), "an array of crossings"),
  plannedComparisons: z
    .custom<number | null>((value) => value === null || isCount(value), "a non-negative integer or null")
    .optional(),
});

/** The pending measurement requests. Every measurement starts with `add`. */
export class Requests {
  #pending: Requested[] = [];
  #isOpen = true;

  /**
   * Adds a request. Several requests of one id at one step become one measurement that lists all thresholds.
   *
   * @throws PeriodicEvalError `config` for a wrong id, and after the end of training.
   */
  add(callback: TrainerCallback, request: MeasureRequest): void {
    const where = `callback "${callback.id}" measure`;
    parseOptions(where, requestSchema, request);
    const { id, evaluation, crossed, on = "model" } = request;
    if (!this.#isOpen) {
      throw configError({
        where,
        got: `a request for "${id}" after the end of training`,
        expected: "requests until onTrainEnd",
        fix: "Request it in an earlier hook.",
      });
    }
    const index = this.#pending.findIndex((pending) => pending.id === id);
    const same = this.#pending[index];
    if (same === undefined) {
      this.#pending.push({ ...request, callback });
    } else if (same.evaluation === evaluation && (same.on ?? "model") === on) {
      this.#pending[index] = { ...same, crossed: [...same.crossed, ...crossed] };
    } else {
      throw configError({
        where,
        path: ["id"],
        got: `"${id}", which callback "${same.callback.id}" requested at this step with another evaluation`,
        expected: "a different id for each evaluation",
        fix: "Give one of the requests another id.",
      });
    }
  }

  /** Adds requests for interrupted measurements, unless their id is already pending. */
  requeue(interrupted: readonly Requested[]): void {
    for (const request of interrupted) if (!this.has(request.id)) this.#pending.push(request);
  }

  get count(): number {
    return this.#pending.length;
  }

  /** Whether the window to come measures the start of the phase. */
  get areOfStart(): boolean {
    return this.#pending.some(({ crossed }) => crossed.some(({ trigger }) => isEdge(trigger, "start")));
  }

  has(id: string): boolean {
    return this.#pending.some((pending) => pending.id === id);
  }

  /** Returns the ids that were added after the first `count`. */
  idsAfter(count: number): readonly string[] {
    return this.#pending.slice(count).map(({ id }) => id);
  }

  /** Removes and returns all pending requests. */
  take(): readonly Requested[] {
    return this.#pending.splice(0);
  }

  close(): void {
    this.#isOpen = false;
  }
}
