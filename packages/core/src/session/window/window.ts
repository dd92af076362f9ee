// A window is the pause of training in which the requested measurements run, on the frozen weights of one step.
// Window → measure-request (one Outcome) → record-outcome → records/background-grading → records/snapshot-writer.
import type { Evidence, Snapshot } from "../../contracts/snapshot.ts";
import { withSeededRandom } from "../../guard/randomness.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { workingSeconds } from "../../internal/working-clock.ts";
import { shareGenerations, type SharedModel } from "../../model/share-generations.ts";
import { seedOf } from "../../random/streams.ts";
import { describeCrossing } from "../../schedule/triggers.ts";
import { sizeOf } from "../budget/measurement-size.ts";
import { measurementAt, type Measurement, type Position, type Requested } from "../records/new-snapshot.ts";
import { callbackName } from "../records/reporter.ts";
import { measureRequest, type Outcome, type ReadyRequest, type WindowParts } from "./measure-request.ts";
import { recordOutcome } from "./record-outcome.ts";
import { isBroken, reportDisturbance } from "./guarded.ts";

/** The source of a window's requests, and the hooks that react to its snapshots. */
export interface RequestSource {
  take(): readonly Requested[];
  /** Runs the hooks for new snapshots. They may request more, which the same window measures. */
  announce(): Promise<void>;
}

/** How often one window takes a measurement that hooks request again because it is not complete. */
const maxRepeats = 3;
/** How often hooks may request more in one window. Hooks that request another id for each snapshot would hold training for ever. */
const maxRounds = 100;
const tooManyRounds = `not measured: hooks had reacted to snapshots of this step with further requests ${maxRounds} times`;

/** Opens a window and measures until nothing is requested any more. Equal prompts of its measurements are generated once. */
export async function runWindow(
  parts: WindowParts,
  position: Position,
  source: RequestSource,
): Promise<void> {
  const { clock, governor } = parts;
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
    governor.closeWindow();
  }
}

class Window {
  readonly #parts: WindowParts;
  readonly #position: Position;
  #model: Promise<SharedModel> | null = null;
  /** How often each id was requested. */
  readonly #counts = new Map<string, number>();
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
      else if (!this.#isRepeatedTooOften(requested)) ready.push(await this.#prepare(requested));
    }
    this.#sortByCost(ready);
    governor.expect(ready.map(({ requested }) => requested.id));
    let justLeft: readonly Evidence[] = [];
    for (const one of ready) {
      if (records.lost() !== null) return;
      const { id } = one.requested;
      governor.reach(id);
      const outcome = await this.#take(one, justLeft, broken);
      await recordOutcome(this.#parts, one, outcome, this.#position);
      const evidence = evidenceOf(outcome);
      if (evidence === null) continue;
      justLeft = evidence;
      broken ??= await this.#checkReceipt(id, evidence);
    }
  }

  async #take(ready: ReadyRequest, justLeft: readonly Evidence[], broken: string | null): Promise<Outcome> {
    const { signal } = this.#parts;
    if (broken !== null) return { kind: "skipped", reason: broken, decision: { governor: "off" } };
    if (signal.aborted) return { kind: "interrupted" };
    const disabled = this.#parts.preflight.whyDisabled(ready.requested.evaluation);
    if (disabled !== null) {
      const { message: reason } = disabled;
      return { kind: "skipped", reason, warnings: [disabled], decision: { governor: "off" } };
    }
    const window = { justLeft, saveWeights: () => this.#saveWeights() };
    return measureRequest(this.#parts, ready, window);
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

  /** Counts a request, and warns if the window has taken it too often. Its last snapshot says why it is not complete. */
  #isRepeatedTooOften({ callback, id }: Requested): boolean {
    const count = this.#counts.get(id) ?? 0;
    this.#counts.set(id, count + 1);
    if (count < maxRepeats) return false;
    const message = `"${id}" is not measured again at step ${this.#position.progress.step}, after ${maxRepeats} times`;
    this.#parts.reporter.warn(callbackName(callback), message);
    return true;
  }

  async #prepare(requested: Requested): Promise<ReadyRequest> {
    const { preflight, signal } = this.#parts;
    const { evaluation, on = "model", callback } = requested;
    const measurement = this.#measurementOf(requested);
    let prepared: ReadyRequest["prepared"] = { error: null };
    if (!signal.aborted && preflight.whyDisabled(evaluation) === null) {
      try {
        prepared = await preflight.prepare((await this.#sharedModel()).model, evaluation, on, callback);
      } catch (error) {
        prepared = { error };
      }
    }
    return { requested, measurement, prepared };
  }

  #measurementOf({ id, evaluation, crossed, on = "model" }: Requested): Measurement {
    const { known, interrupted } = this.#parts.records;
    const { phase, progress } = this.#position;
    const earlier = known.getSettled({ phase, id, step: progress.step })?.crossed ?? [];
    const described = [...interrupted.crossedOf(id), ...crossed].map(describeCrossing);
    const all = [...new Set([...earlier, ...described])];
    return measurementAt(this.#position, { id, evaluation, on, crossed: all });
  }

  /** Sorts baselines first, then by expected seconds; by items while some costs are unknown. */
  #sortByCost(ready: ReadyRequest[]): void {
    const { governor, records } = this.#parts;
    const items = ({ prepared }: ReadyRequest) => ("items" in prepared ? prepared.items.length : 0);
    const seconds = new Map(
      ready.map((one) => {
        const { id, evaluation } = one.requested;
        return [one, governor.expectedSeconds(id, sizeOf(evaluation, items(one)))];
      }),
    );
    const isKnown = ![...seconds.values()].includes(null);
    const cost = (one: ReadyRequest) => (isKnown ? seconds.get(one)! : items(one));
    const rank = ({ requested }: ReadyRequest) => (records.baselines.isBaselineId(requested.id) ? 0 : 1);
    ready.sort((a, b) => rank(a) - rank(b) || cost(a) - cost(b));
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
    const { options, reporter, patience } = this.#parts;
    const { phase, progress } = this.#position;
    try {
      const work = { where: "saveAtFiring", what: "the function", sign: { at: workingSeconds() } };
      const path: unknown = await patience.run(work, () => options.saveAtFiring!({ phase, progress }));
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

/** Returns the guards' evidence of a measurement; null if the guards were not entered. */
function evidenceOf(outcome: Outcome): readonly Evidence[] | null {
  if (outcome.kind === "interrupted") return null;
  if (outcome.kind === "failed") return outcome.measured?.receipt ?? [];
  return outcome.measured?.receipt ?? null;
}
