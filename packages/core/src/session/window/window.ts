// A window is the pause of training in which the requested measurements run, on the frozen weights of one step.
// Window → take-measurement → records/grading → records/snapshot-writer → the store.
import type { Budget, Evidence, Snapshot } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { availableMemory, workingSeconds, checkpointEvidence } from "@periodic-eval/store";
import { shareGenerations, type SharedModel } from "../../model/share-generations.ts";
import { withSeededRandom } from "../../random/guards.ts";
import { seedOf } from "../../random/streams.ts";
import { describeCrossing } from "../../schedule/triggers.ts";
import type { BudgetRequest, MeasurementBudget, WindowPlan } from "../budget/governor.ts";
import { budgetKey } from "../budget/describe-plan.ts";
import type { LearnedMeasurement } from "../budget/learned.ts";
import { sizeOf } from "../budget/share-seconds.ts";
import { measurementAt, type Measurement, type Position, type Requested } from "../records/new-snapshot.ts";
import { callbackName } from "../records/reporter.ts";
import { abortReason } from "../records/interrupted.ts";
import { adoptSnapshot } from "../records/resume.ts";
import { isBroken } from "./guarded.ts";
import { reportDisturbance } from "./disturbances.ts";
import type { Prepared } from "./prepare.ts";
import { takeMeasurement, type TakenMeasurement } from "./take-measurement.ts";
import { modelWarnings, overheadPercent, putWithoutRows, type WindowParts } from "./put-measurement.ts";

/** A request with everything it needs, or the error that prevented it. */
interface ReadyRequest extends BudgetRequest {
  readonly requested: Requested;
  readonly measurement: Measurement;
  readonly prepared: Prepared | { readonly error: unknown };
}

/** The source of a window's requests, and the hooks that react to its snapshots. */
export interface RequestSource {
  take(): readonly Requested[];
  /** Runs the hooks for new snapshots. They may request more, which the same window measures. */
  announce(): Promise<void>;
}

/** How often hooks may request more in one window. Hooks that request something for each snapshot would hold training for ever. */
const maxRounds = 100;
const tooManyRounds = `not measured: hooks had reacted to snapshots of this step with further requests ${maxRounds} times`;

/** Opens a window and measures until nothing is requested any more. Equal prompts of its measurements are generated once. */
export async function runWindow(
  parts: WindowParts,
  position: Position,
  source: RequestSource,
): Promise<void> {
  const { clock } = parts;
  const window = new Window(parts, position);
  clock.openWindow();
  try {
    // Items and metrics are computed outside the guards. They must leave training's random numbers alone too.
    const seed = seedOf(position.seed, position.phase, "window", position.progress.step);
    await withSeededRandom(seed, async () => {
      let round = 0;
      for (let requests = source.take(); requests.length > 0; requests = source.take()) {
        if (round++ > maxRounds) return window.measureAll(requests, tooManyRounds);
        await window.measureAll(requests);
        await source.announce();
      }
    });
  } finally {
    clock.closeWindow();
  }
}

class Window {
  readonly #parts: WindowParts;
  readonly #position: Position;
  #model: Promise<SharedModel> | null = null;
  #saved: Promise<NonNullable<Snapshot["saved"]>> | null = null;

  constructor(parts: WindowParts, position: Position) {
    this.#parts = parts;
    this.#position = position;
  }

  /**
   * Measures requests one after the other, the cheapest first, each inside the guards: a receipt blames one measurement.
   *
   * @param broken Why all are skipped; null to measure them.
   */
  async measureAll(requests: readonly Requested[], broken: string | null = null): Promise<void> {
    const { governor, records } = this.#parts;
    const ready: ReadyRequest[] = [];
    for (const requested of records.baselines.withBaselines(requests)) {
      const { id } = requested;
      if (this.#isMeasured(id)) records.interrupted.settle(id);
      else ready.push(await this.#prepare(requested));
    }
    const plan = governor.planWindow(ready, this.#position.progress);
    const learned: LearnedMeasurement[] = [];
    let justLeft: readonly Evidence[] = [];
    for (const request of plan.requests) {
      if (records.lost() !== null) break;
      const taken = await this.#take(request, plan, justLeft, broken);
      if (taken.learned !== null) learned.push(taken.learned);
      if (taken.receipt === null) continue;
      justLeft = taken.receipt;
      broken ??= await this.#checkReceipt(request.id, taken.receipt);
    }
    governor.learnWindow(learned);
  }

  async #take(
    ready: ReadyRequest,
    plan: WindowPlan<ReadyRequest>,
    justLeft: readonly Evidence[],
    broken: string | null,
  ): Promise<TakenMeasurement> {
    const { records, guards, signal, clock, preflight, disturbances, timeouts, reporter } = this.#parts;
    const { id, requested, measurement, prepared } = ready;
    const { callback, evaluation, plannedComparisons = null } = requested;
    const { phase, at } = measurement;
    const { checkpoint } = this.#position;
    const disabled = signal.aborted ? null : preflight.whyDisabled(evaluation);
    const unmeasured = disabled && { reason: disabled.message, warnings: [disabled] };
    const waited = { where: callbackName(callback), what: `measure of "${evaluation.name}"` };
    let isInterrupted = false;
    const taken = await takeMeasurement({
      measurement,
      evaluation,
      prepare() {
        if ("error" in prepared) throw prepared.error;
        return prepared;
      },
      skip: broken === null ? unmeasured : { reason: broken, warnings: [] },
      allow: () => this.#allow(plan, ready),
      guards,
      justLeft,
      signal,
      clock: () => clock.now(),
      progress: (done, total, pace) => reporter.measuring({ id, step: at.step, done, total, ...pace }),
      settle: (heartbeat, call, abandon) => timeouts.run({ ...waited, heartbeat, abandon }, call),
      existing: records.known.getUnsettled({ phase, id, step: at.step }),
      saveWeights: () => this.#saveWeights(),
      describe: (weights) => ({
        warnings: [...modelWarnings(this.#parts, measurement, weights)],
        receipt: [...disturbances.take(), ...(checkpoint === null ? [] : [checkpointEvidence(checkpoint)])],
      }),
      overheadPercent: () => overheadPercent(at.step, clock),
      interrupt: () => {
        isInterrupted = true;
        return records.interrupted.keep(requested, this.#position, abortReason(signal)!);
      },
      putWithoutRows: (snapshot, failure) => putWithoutRows(this.#parts, requested, snapshot, failure),
      adopt: (existing) => {
        // Its seconds paused the training that led to these weights.
        clock.countEarlier(existing.timing.total_seconds);
        return adoptSnapshot(records, existing, measurement, callback);
      },
      put: (base, rows, supersede) => {
        const comparison = records.comparisons.plan(base, plannedComparisons);
        return records.grading.record({ base, rows, evaluation, callback, plan: comparison }, supersede);
      },
    });
    if (!isInterrupted) records.interrupted.settle(id);
    return taken;
  }

  /** Asks the plan how many rows may be measured now, unless there is too little memory. */
  #allow(plan: WindowPlan<ReadyRequest>, ready: ReadyRequest): MeasurementBudget {
    const { options, reporter } = this.#parts;
    const budget = plan.allow(ready);
    const missing = describeMissingMemory(options.budget ?? {});
    if (missing !== null) {
      const limit = { limit: "min_free_bytes" } as const;
      const first = { rows: 0, deadline: null };
      return { ...budget, governor: () => "off", limit, why: missing, first };
    }
    if (budget.announcement !== null) reporter.plan(budget.announcement);
    return budget;
  }

  /** Reports a broken receipt. Returns why the rest of the window is skipped; null if measuring continues. */
  async #checkReceipt(id: string, evidence: readonly Evidence[]): Promise<string | null> {
    const { reporter, options } = this.#parts;
    const blamed = evidence.find(isBroken);
    if (blamed === undefined) return null;
    const measurement = `the measurement "${id}" at step ${this.#position.progress.step}`;
    reportDisturbance(reporter, blamed, measurement);
    // Further measurements would use weights that training did not make.
    if (options.onBrokenReceipt !== "record")
      return `not measured: "${id}" had broken the guard "${blamed.part}"`;
    (await this.#sharedModel()).forget();
    return null;
  }

  /** Whether this training already measured an id at this step; failed, skipped and partial snapshots are measured again. */
  #isMeasured(id: string): boolean {
    const { phase, progress } = this.#position;
    const status = this.#parts.records.known.getSettled({ phase, id, step: progress.step })?.status;
    return status === "complete" || status === "grading";
  }

  async #prepare(requested: Requested): Promise<ReadyRequest> {
    const { preflight, signal, records } = this.#parts;
    const { id, crossed, evaluation, on = "model", callback } = requested;
    const measurement = this.#measurementOf(requested);
    let prepared: ReadyRequest["prepared"] = { error: null };
    if (!signal.aborted && preflight.whyDisabled(evaluation) === null) {
      try {
        const { model } = await this.#sharedModel();
        prepared = await preflight.prepare(model, evaluation, on, callback, this.#position.progress);
      } catch (error) {
        prepared = { error };
      }
    }
    const size = "error" in prepared ? null : sizeOf(evaluation, prepared.items.length);
    const isBaseline = records.baselines.isBaselineId(id);
    return { id, crossed, size, isBaseline, requested, measurement, prepared };
  }

  #measurementOf({ id, evaluation, crossed, on = "model" }: Requested): Measurement {
    const { known, interrupted } = this.#parts.records;
    const { phase, progress } = this.#position;
    const earlier = known.getSettled({ phase, id, step: progress.step })?.crossed ?? [];
    const described = [...interrupted.crossedOf(id), ...crossed].map(describeCrossing);
    const all = [...new Set([...earlier, ...described])];
    return measurementAt(this.#position, { id, evaluation, on, crossed: all });
  }

  #sharedModel(): Promise<SharedModel> {
    this.#model ??= this.#parts.preflight
      .modelAt(this.#position.progress)
      .then((model) => shareGenerations(model));
    return this.#model;
  }

  #saveWeights(): Promise<Snapshot["saved"]> | undefined {
    if (this.#parts.options.saveAtFiring === undefined) return undefined;
    this.#saved ??= this.#save();
    return this.#saved;
  }

  async #save(): Promise<NonNullable<Snapshot["saved"]>> {
    const { options, reporter, timeouts } = this.#parts;
    const { phase, progress } = this.#position;
    try {
      const work = { where: "saveAtFiring", what: "the function", heartbeat: { at: workingSeconds() } };
      const path: unknown = await timeouts.run(work, () => options.saveAtFiring!({ phase, progress }));
      if (typeof path !== "string")
        throw new TypeError(`got ${typeof path}, expected the path that was written`);
      return { path, error: null };
    } catch (error) {
      const message = `the weights of step ${progress.step} are not saved: ${errorMessage(error)}`;
      reporter.warn("saveAtFiring", message);
      return { path: null, error: errorMessage(error) };
    }
  }
}

/** Returns why the machine has too little memory to measure; null if it has enough or the amount is unknown. */
function describeMissingMemory({ minFreeBytes = null, ...budget }: Budget): string | null {
  if (minFreeBytes === null) return null;
  const free = availableMemory();
  if (free === null || free >= minFreeBytes) return null;
  return `${free} bytes of memory are free, less than the ${minFreeBytes} of ${budgetKey("min_free_bytes", budget)}`;
}
