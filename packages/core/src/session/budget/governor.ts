// Decides how many items each measurement may use, so that measuring stays within the budget.
// The session asks it (`allow`) before every measurement and reports to it (`learnMeasurement`) after every one.
import type { TrainerCallback } from "../../contracts/callback.ts";
import type { Crossing, Progress } from "../../contracts/schedule.ts";
import type { Budget } from "../../contracts/session.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";
import { isEdge, measurementsOf, otherMeasurements, projectSeconds, secondsOfEnd } from "./forecast.ts";
import { Learned, type Course } from "./learned.ts";
import type { MeasurementCost, MeasurementTime } from "./measurement-costs.ts";
import type { PhaseClock } from "./phase-clock.ts";
import { shareSeconds } from "./share-seconds.ts";

/** The governor's decision about one measurement. */
export interface MeasurementBudget {
  /** The decision and its reason, for the snapshot's `timing.governor`. */
  readonly governor: string;
  /** Why not all items are measured, for a person; null if all are. */
  readonly why: string | null;
  /** Items to measure first; 0 skips the measurement. */
  readonly first: number;
  /** Returns how many more items to measure, once `done` items took `seconds`; 0 ends the measurement. */
  more(done: number, seconds: number): number;
  /** Returns when the measurement is cut off, in seconds of the phase clock; null for never. */
  deadline(): number | null;
}

export interface BudgetRequest {
  readonly id: string;
  readonly crossed: readonly Crossing[];
  /** Items of a whole measurement. */
  readonly items: number;
  /** Whether it measures a baseline, which is never cut. */
  readonly isBaseline: boolean;
  readonly at: Progress;
}

/** Share of the allowed pause that is held back for items that are slower than expected. */
const windowSlack = 0.1;
/** A measurement is cut off at this multiple of its expected seconds. */
const patience = 2;
/** Held back for an end that takes longer than expected: a share of it and all doubtful seconds, but at most these shares. */
const caution = { ofEnd: 0.03, ofTraining: 0.01, ofLeft: 0.1 };
/** Share of the items that is measured first if their cost is unknown. */
const pilot = 1 / 16;

const defaultOverheadPercent = 20;

export interface GovernorOptions {
  readonly budget: Budget | undefined;
  readonly callbacks: readonly TrainerCallback[];
  readonly clock: PhaseClock;
}

export class Governor {
  readonly #overheadPercent: number | null;
  readonly #secondsPerWindow: number | null;
  readonly #callbacks: readonly TrainerCallback[];
  readonly #clock: PhaseClock;
  readonly #learned = new Learned();
  /** Ids that the open window has still to measure. */
  readonly #pending = new Set<string>();

  constructor({ budget = {}, callbacks, clock }: GovernorOptions) {
    const { overheadPercent = defaultOverheadPercent, secondsPerWindow = null } = budget;
    this.#overheadPercent = overheadPercent;
    this.#secondsPerWindow = secondsPerWindow;
    this.#callbacks = callbacks;
    this.#clock = clock;
  }

  /** Learns from the snapshots of earlier sessions that still stand. */
  learnSnapshots(snapshots: readonly Snapshot[], phase: string): void {
    this.#learned.fromSnapshots(snapshots, this.#callbacks, phase);
  }

  /** Must be called after every training step. */
  learnStep(previous: Progress | null, progress: Progress): void {
    this.#learned.fromStep(previous, progress);
  }

  /** Must be called after every recorded measurement that produced rows. */
  learnMeasurement(
    id: string,
    course: Course,
    whole: { readonly items: number; readonly seconds: number },
  ): void {
    this.#learned.fromMeasurement(id, course, whole);
  }

  expect(ids: readonly string[]): void {
    for (const id of ids) this.#pending.add(id);
  }

  /** Notes that the open window has come to this id. */
  reach(id: string): void {
    this.#pending.delete(id);
  }

  closeWindow(): void {
    this.#pending.clear();
  }

  /** Returns the expected seconds of a whole measurement; null if nothing is known or there is no budget. */
  expectedSeconds(id: string, items: number): number | null {
    const cost = this.#isGoverned ? this.#learned.cost(id) : null;
    return cost && cost.fixed + cost.perItem * items;
  }

  /** Decides how many items a measurement may use now. */
  allow(request: BudgetRequest): MeasurementBudget {
    const { id, items, at } = request;
    const learned = this.#learned;
    learned.setSize(id, items);
    const whole = this.#whyWhole(request);
    if (whole !== null)
      return { governor: whole, why: null, first: items, more: () => 0, deadline: () => null };
    learned.countRequest(id);

    const began = this.#clock.now();
    const first = this.#plan(id, items, at, { began, and: null });
    learned.countDecision(id, first.items === 0);
    let { seconds } = first;
    return {
      governor: `${describeItems(first.items, items)}: ${first.why}`,
      why: first.why,
      first: first.items,
      deadline: () => (Number.isFinite(seconds) ? began + seconds : null),
      more: (done, taken) => {
        // Only once: each portion pays the fixed cost of a call again.
        if (done >= items || done > first.items) return 0;
        const and = { items: done, seconds: taken, afterFirstCall: null, aroundSeconds: 0, isWarm: true };
        const further = this.#plan(id, items, at, { began, and });
        const more = further.items - done;
        // A small batch costs nearly as much as a larger one.
        if (more < Math.max(1, done / 4)) return 0;
        seconds = further.seconds;
        return more;
      },
    };
  }

  get #isGoverned(): boolean {
    return this.#overheadPercent !== null || this.#secondsPerWindow !== null;
  }

  /** Returns the decision for a measurement that the budget must not cut; null for all others. */
  #whyWhole({ crossed, isBaseline, at: { ended, step, maxSteps } }: BudgetRequest): string | null {
    if (!this.#isGoverned) return "off";
    if (step === 0 || crossed.some(({ trigger }) => isEdge(trigger, "start"))) return "whole: the start is";
    // A measurement at the last step is the one at the end: it is not repeated.
    if (ended || (maxSteps !== null && step >= maxSteps)) return "whole: the end is";
    return isBaseline ? "whole: the baseline is" : null;
  }

  /** Decides how many items a measurement may use; with `and`, how many in all if those are already measured. */
  #plan(id: string, items: number, at: Progress, { began, and }: Current): Planned {
    const learned = this.#learned;
    const spent = this.#clock.now() - began;
    const cost = learned.cost(id, and);
    const { left, projected, why } = this.#available(at, { id, and });
    const room = left + spent;
    const inWindow = this.#secondsLeftInWindow() + spent;
    const most = Math.min(room, inWindow);
    if (cost === null) {
      const tried = most > 0 ? Math.ceil(pilot * items) : 0;
      return { items: tried, seconds: most, why: `${why}; the cost per item is not known yet` };
    }
    const whole = cost.fixed + cost.perItem * items;
    // A further portion pays the fixed cost again.
    const again = and === null ? 0 : cost.fixed;
    const fitsWindow = itemsWithin((1 - windowSlack) * inWindow - again, cost, items);
    const windowWhy = `${secondsText(whole)} expected, ${secondsText(Math.max(0, inWindow))} left of the ${this.#secondsPerWindow} s of a window`;
    if (fitsWindow === 0) return { items: 0, seconds: inWindow, why: windowWhy };
    const forecast = { at, callbacks: this.#callbacks, learned };
    const wanted = measurementsOf(forecast, id, cost, projected);
    const others = otherMeasurements(forecast, id, projected, this.#pending);
    const mine = { ...wanted, items: Math.min(items, fitsWindow) };
    const share = shareSeconds(room - again, [mine, ...others]).get(id)!;
    // If the budget pays for only some of the measurements, they are spread over those to come.
    const isTurn = (learned.skippedInARow(id) + 1) * share.measurements >= wanted.measurements;
    const given = and !== null || isTurn ? share.items : 0;
    const expected = cost.fixed + again + cost.perItem * given;
    const isBudgetLimit = given < fitsWindow || fitsWindow === items;
    return {
      items: given,
      seconds: Math.min(Math.max(most, expected), patience * expected),
      why: isBudgetLimit ? `${secondsText(whole)} expected, ${why}` : windowWhy,
    };
  }

  /** Returns the seconds for all measurements from now until before the end. */
  #available(
    at: Progress,
    current: { readonly id: string; readonly and: MeasurementTime | null },
  ): { readonly left: number; readonly projected: number; readonly why: string } {
    const { wall, windows } = this.#clock.seconds();
    const forecast = { at, callbacks: this.#callbacks, learned: this.#learned };
    const projected = projectSeconds(forecast, wall - windows);
    const percent = this.#overheadPercent;
    if (percent === null) return { left: Infinity, projected, why: "no limit on overhead" };
    const { expected: kept, doubtful } = secondsOfEnd(forecast, current);
    const most = (percent / 100) * projected - windows - kept;
    const heldBack = Math.min(
      doubtful + caution.ofEnd * kept,
      caution.ofTraining * projected,
      caution.ofLeft * most,
    );
    const left = most - Math.max(0, heldBack);
    const training = at.maxSteps === null ? "trained so far" : "of training expected";
    const why = `${secondsText(Math.max(0, left))} left for this and later measurements: ${percent} % of ${secondsText(projected)} ${training}, less ${secondsText(windows)} used and ${secondsText(kept)} kept for the end`;
    return { left, projected, why };
  }

  #secondsLeftInWindow(): number {
    return this.#secondsPerWindow === null
      ? Infinity
      : this.#secondsPerWindow - this.#clock.secondsInWindow();
  }
}

interface Planned {
  readonly items: number;
  /** When to cut the measurement off, in seconds after it began. */
  readonly seconds: number;
  readonly why: string;
}

/** The measurement under way: when it began, and its items so far. */
interface Current {
  readonly began: number;
  readonly and: MeasurementTime | null;
}

function describeItems(given: number, items: number): string {
  if (given === items) return "whole";
  return given === 0 ? "skipped" : `${given} of ${items} items`;
}

function itemsWithin(seconds: number, { fixed, perItem }: MeasurementCost, items: number): number {
  if (!(perItem > 0)) return items;
  // Slightly more, to make up for sums that rounding made too small.
  return Math.max(0, Math.min(items, Math.floor(((1 + 1e-9) * seconds - fixed) / perItem)));
}

const secondsText = (seconds: number) => `${Number(seconds.toPrecision(3))} s`;
