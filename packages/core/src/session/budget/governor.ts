// Decides how many rows each measurement may have, so that measuring stays within the budget.
// A window asks it once for a plan (`planWindow`) and tells it once what was measured (`learnWindow`).
import type {
  TrainerCallback,
  Crossing,
  Progress,
  Budget,
  BudgetLimit,
  Snapshot,
} from "@periodic-eval/contracts";
import {
  describeSize,
  isReduced,
  wholeInWindow,
  type MeasurementSize,
  type Wanted,
  plannedSeconds,
  shareSeconds,
} from "./share-seconds.ts";
import { budgetKey, describePlan, describeStepTime, fewerQuestions, limitsOf } from "./describe-plan.ts";
import { plannedSteps } from "../../schedule/crossings.ts";
import { isEdge } from "../../schedule/triggers.ts";
import {
  measurementsAhead,
  projectSeconds,
  secondsOfEnd,
  type Forecast,
  type UnderWay,
  Learned,
  type LearnedMeasurement,
  type MeasurementTime,
} from "./learned.ts";
import type { PhaseClock } from "./phase-clock.ts";
import { secondsText } from "../../statistics/format.ts";

/** The governor's decision about one measurement. */
export interface MeasurementBudget {
  /** Describes a measurement of `rows` rows and the reason for its size, for the snapshot's `timing.governor`. */
  governor(rows: number): string;
  /** The option of the budget that decided, for `timing.budget`; null if none applies to this measurement. */
  readonly limit: { readonly limit: BudgetLimit; readonly grace_seconds?: number } | null;
  /** Why not all rows are measured, for a person; null if all are. */
  readonly why: string | null;
  /** Announces the first reduction of the phase, with its remedy; null for all later ones. */
  readonly announcement: string | null;
  /** What to measure first; no rows skip the measurement. */
  readonly first: Portion;
  /** Returns what to measure next, once `done` rows took `seconds`; no rows end the measurement. */
  more(done: number, seconds: number): Portion;
}

/** Rows to measure, and when they are cut off, in seconds of the phase clock; null for never. */
export interface Portion {
  readonly rows: number;
  readonly deadline: number | null;
}

export interface BudgetRequest {
  readonly id: string;
  readonly crossed: readonly Crossing[];
  /** Null if it could not be prepared: it is not measured. */
  readonly size: MeasurementSize | null;
  /** Whether it measures a baseline, which is never cut. */
  readonly isBaseline: boolean;
}

/** The plan of one window. */
export interface WindowPlan<T> {
  /** The requests, the cheapest first, after the baselines. */
  readonly requests: readonly T[];
  /** Decides how many rows a measurement may have when its turn has come. */
  allow(request: T): MeasurementBudget;
}

/** A measurement is cut off at this multiple of its expected seconds, unless later measurements leave more to spare. */
const patience = 2;
/** Held back for an end that takes longer than expected: a share of it and all doubtful seconds, but at most these shares. */
const caution = { ofEnd: 0.03, ofAllowed: 0.05, ofLeft: 0.1 };

export class Governor {
  readonly #limits: ReturnType<typeof limitsOf>;
  readonly #callbacks: readonly TrainerCallback[];
  readonly #clock: PhaseClock;
  readonly #learned = new Learned();
  /** `waiting`: the cost of a measurement is unknown until it was taken. */
  #announcement: "wanted" | "waiting" | "made" = "wanted";
  #isReductionAnnounced = false;
  #isStepTimeAnnounced = false;

  constructor(budget: Budget, callbacks: readonly TrainerCallback[], clock: PhaseClock) {
    this.#limits = limitsOf(budget);
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

  /** Plans the measurements of a window. */
  planWindow<T extends BudgetRequest>(requests: readonly T[], at: Progress): WindowPlan<T> {
    const sorted = this.#sortByCost(requests);
    return {
      requests: sorted,
      allow: (request) => this.#allow(request, sorted.slice(sorted.indexOf(request)), at),
    };
  }

  /** Learns from the measurements of a window. */
  learnWindow(measurements: readonly LearnedMeasurement[]): void {
    for (const measurement of measurements) {
      if ("adopted" in measurement) this.#learned.fromSnapshots([measurement.adopted], this.#callbacks, null);
      else this.#learned.fromMeasurement(measurement);
      if (this.#announcement === "waiting") this.#announcement = "wanted";
    }
  }

  /** Sorts baselines first, then by expected seconds; by rows while some costs are unknown or there is no budget. */
  #sortByCost<T extends BudgetRequest>(requests: readonly T[]): readonly T[] {
    const costs = requests.map(({ id }) => (this.#isGoverned ? this.#learned.costs.of(id) : null));
    const ranked = requests.map((request, at) => {
      const [cost, rows] = [costs[at]!, request.size?.whole ?? 0];
      const value = cost === null || costs.includes(null) ? rows : cost.fixed + cost.perRow * rows;
      return { request, value, rank: request.isBaseline ? 0 : 1 };
    });
    return ranked.sort((a, b) => a.rank - b.rank || a.value - b.value).map(({ request }) => request);
  }

  #allow(request: BudgetRequest, pending: readonly BudgetRequest[], at: Progress): MeasurementBudget {
    const { id } = request;
    const size = request.size!;
    const learned = this.#learned;
    learned.sizes.set(id, size);
    const whole = this.#whyWhole(request, at);
    if (whole !== null) {
      const governor = (rows: number) => (whole === "off" ? whole : `${describeSize(rows, size)}: ${whole}`);
      const first = { rows: size.whole, deadline: null };
      return { governor, limit: null, why: null, announcement: null, first, more: () => noRows };
    }
    learned.countRequest(id);
    const began = this.#clock.now();
    const decide = (and: MeasurementTime | null) => this.#decide({ id, size, at, pending, began, and });
    const portion = ({ seconds }: Decision, rows: number): Portion => ({
      rows,
      deadline: Number.isFinite(seconds) ? began + seconds : null,
    });
    const first = decide(null);
    learned.countDecision(id, first.rows === 0);
    const grace = Number.isFinite(this.#limits.graceSeconds) && { grace_seconds: this.#limits.graceSeconds };
    return {
      governor: (rows) => `${describeSize(rows, size)}: ${first.why}`,
      limit: { limit: first.limit, ...(first.limit === "grace_seconds" && grace) },
      why: first.why,
      announcement: this.#announceReduction(id, size, at, first),
      first: portion(first, first.rows),
      more: (done, taken) => {
        // Only once: each portion pays the fixed cost of a call again.
        if (done >= size.whole || done > first.rows) return noRows;
        const and = { rows: done, seconds: taken, afterFirstCall: null, aroundSeconds: 0, isWarm: true };
        const further = decide(and);
        const more = further.rows - done;
        // A small batch costs nearly as much as a larger one.
        return more < Math.max(1, done / 4) ? noRows : portion(further, more);
      },
    };
  }

  /** Whether `announcePlan` may have something to say. Cheap: the session asks at every step. */
  get mayAnnouncePlan(): boolean {
    return this.#isGoverned && this.#announcement === "wanted";
  }

  /**
   * Returns the plan of the phase as a message: as soon as the cost of every scheduled measurement is known, and the speed of
   * training if the plan depends on it; before step 1, how slow training must be for all of it. Returns null before and after that.
   * Must be called between windows.
   *
   * @param requested Ids to be measured at this step.
   */
  announcePlan(at: Progress, requested: readonly string[]): string | null {
    if (!this.mayAnnouncePlan || at.ended || at.maxSteps === null) return null;
    const isSpeedKnown = at.step > (this.#learned.firstStep?.steps ?? at.step);
    // After the last step only the end is left to measure.
    if (at.step >= at.maxSteps) return null;
    const scheduled = this.#callbacks.filter(({ triggers = [] }) => triggers.length > 0);
    if (scheduled.length === 0 || scheduled.some(({ id }) => this.#learned.costs.of(id) === null)) {
      this.#announcement = "waiting";
      return null;
    }
    const { isGrace, ...plan } = this.#planAhead(at, requested);
    const { ahead, shares } = plan;
    const isLess = isReduced(ahead, shares);
    if (!isSpeedKnown && (isLess || !isGrace)) return this.#announceStepTime(at, plan);
    this.#announcement = "made";
    this.#isReductionAnnounced ||= isLess;
    return describePlan({
      ...plan,
      projected: isSpeedKnown ? plan.projected : null,
      overheadPercent: this.#limits.overheadPercent,
      graceSeconds: this.#limits.graceSeconds,
      remedy: isLess ? this.#remedy : null,
    });
  }

  /** Returns the step time that all measurements need, once, before step 1. */
  #announceStepTime({ step, maxSteps }: Progress, { ahead, windows, kept }: AheadOfEnd): string | null {
    if (this.#isStepTimeAnnounced || step > 0 || maxSteps === null) return null;
    this.#isStepTimeAnnounced = true;
    const whole = ({ fixed, perRow, size }: Wanted) => fixed + perRow * size.whole;
    const seconds = ahead.reduce((sum, wanted) => sum + wanted.measurements * whole(wanted), windows + kept);
    const evaluations = ahead.map((wanted) => {
      const { triggers = [] } = this.#callbacks.find(({ id }) => id === wanted.id) ?? {};
      const measurements = plannedSteps(triggers, maxSteps)?.length ?? wanted.measurements + 2;
      return { id: wanted.id, seconds: measurements * whole(wanted) };
    });
    return describeStepTime({ seconds, evaluations, maxSteps, budget: this.#limits });
  }

  /** Shares the seconds that are left among the measurements between now and the end. */
  #planAhead(at: Progress, requested: readonly string[]) {
    const { left, projected, isGrace, windows, kept } = this.#available(at, null);
    const ahead = measurementsAhead(this.#forecast(at), projected, new Set(requested));
    const inWindow = this.#limits.secondsPerWindow ?? Infinity;
    const fitting = ahead.map((wanted) => ({
      ...wanted,
      size: { ...wanted.size, whole: wholeInWindow(inWindow, wanted) },
    }));
    return { ahead, shares: shareSeconds(left, fitting), projected, isGrace, windows, kept };
  }

  /** Names the options that allow more measuring. */
  get #remedy(): string {
    const { overheadPercent: percent, graceSeconds, secondsPerWindow } = this.#limits;
    const limits: (readonly [BudgetLimit, string])[] = [];
    if (percent !== null)
      limits.push(["overhead_percent", `${percent} %`], ["grace_seconds", `${graceSeconds} s`]);
    if (secondsPerWindow !== null) limits.push(["seconds_per_window", `${secondsPerWindow} s`]);
    const raised = limits.map(([limit, value]) => `${budgetKey(limit, this.#limits)} (${value})`);
    return `To measure more, raise ${raised.join(" or ")}.${fewerQuestions(this.#callbacks, this.#limits)}`;
  }

  get #isGoverned(): boolean {
    return this.#limits.overheadPercent !== null || this.#limits.secondsPerWindow !== null;
  }

  /** Returns the decision for a measurement that the budget must not cut; null for all others. */
  #whyWhole({ crossed, isBaseline }: BudgetRequest, { ended, step, maxSteps }: Progress): string | null {
    if (!this.#isGoverned) return "off";
    if (step === 0 || crossed.some(({ trigger }) => isEdge(trigger, "start")))
      return "the start is never reduced";
    // A measurement at the last step is the one at the end: it is not repeated.
    if (ended || (maxSteps !== null && step >= maxSteps)) return "the end is never reduced";
    return isBaseline ? "the baseline is never reduced" : null;
  }

  /** Decides how many rows a measurement may have; with `and`, how many in all if those are already measured. */
  #decide({ id, size, at, pending, began, and }: Current): Decision {
    const spent = this.#clock.now() - began;
    const cost = this.#learned.costs.of(id, and);
    const { left, projected, why, limit } = this.#available(at, { id, and });
    const room = left + spent;
    const inWindow = this.#secondsLeftInWindow() + spent;
    const most = Math.min(room, inWindow);
    if (cost === null) {
      const tried = most > 0 ? size.least : 0;
      return { rows: tried, seconds: most, why: `${why}; the cost per item is not known yet`, limit };
    }
    const whole = cost.fixed + cost.perRow * size.whole;
    // A further portion pays the fixed cost again.
    const again = and === null ? 0 : cost.fixed;
    const fitsWindow = wholeInWindow(inWindow, { size, fixed: cost.fixed + again, perRow: cost.perRow });
    const windowWhy = `${secondsText(Math.max(0, inWindow))} are left of the ${this.#limits.secondsPerWindow} s of a window; ${wholeText(whole)}`;
    if (fitsWindow === 0) return { rows: 0, seconds: inWindow, why: windowWhy, limit: "seconds_per_window" };
    const now = new Set(pending.map((request) => request.id));
    const ahead = measurementsAhead(this.#forecast(at), projected, now, { id, and }).map((entry) =>
      entry.id === id ? { ...entry, size: { ...size, whole: fitsWindow } } : entry,
    );
    const wanted = ahead.find((entry) => entry.id === id)!;
    const shares = shareSeconds(room - again, ahead);
    const share = shares.get(id)!;
    // If the budget pays for only some of the measurements, they are spread over those to come.
    const isTurn = ((this.#learned.skipped.get(id) ?? 0) + 1) * share.measurements >= wanted.measurements;
    const rows = and !== null || isTurn ? share.rows : 0;
    const expected = cost.fixed + again + cost.perRow * rows;
    const spare = room - plannedSeconds(ahead, shares);
    const smallest = cost.fixed + again + cost.perRow * size.least;
    const count = ahead.reduce((sum, { measurements }) => sum + measurements, 0);
    const needs = rows === 0 ? `the smallest measurement needs ${secondsText(smallest)}` : wholeText(whole);
    const isBudgetLimit = rows < fitsWindow || fitsWindow === size.whole;
    return {
      rows,
      seconds: Math.min(Math.max(most, expected), Math.max(patience * expected, expected + spare)),
      ...(isBudgetLimit
        ? { why: `${why}; ${needs} (${count} planned)`, limit }
        : { why: windowWhy, limit: "seconds_per_window" }),
    };
  }

  /** Returns the seconds for all measurements from now until before the end. */
  #available(at: Progress, current: UnderWay | null) {
    const { wall, windows } = this.#clock.seconds();
    const forecast = this.#forecast(at);
    const projected = projectSeconds(forecast, wall - windows);
    const { expected: kept, doubtful } = secondsOfEnd(forecast, current);
    const { overheadPercent: percent, graceSeconds } = this.#limits;
    const underCeiling = percent === null ? Infinity : (percent / 100) * projected;
    const isGrace = percent === null || underCeiling <= graceSeconds;
    const allowed = Math.max(underCeiling, graceSeconds);
    const most = allowed - windows - kept;
    const heldBack = Math.min(
      doubtful + caution.ofEnd * kept,
      caution.ofAllowed * allowed,
      caution.ofLeft * most,
    );
    const left = most - Math.max(0, heldBack);
    const why =
      percent === null
        ? "no limit on overhead"
        : `${left > 0 ? `${secondsText(left)} are` : "no time is"} left before the end in the budget (${secondsText(graceSeconds)}, or ${percent} % of the training if that is more)`;
    const ofPhase = isGrace ? "grace_seconds" : "overhead_percent";
    const limit: BudgetLimit = percent === null ? "seconds_per_window" : ofPhase;
    return { left, projected, windows, kept, isGrace, why, limit };
  }

  #forecast(at: Progress): Forecast {
    return { at, callbacks: this.#callbacks, learned: this.#learned };
  }

  #announceReduction(
    id: string,
    size: MeasurementSize,
    at: Progress,
    { rows, why }: Decision,
  ): string | null {
    const isKnown = this.#learned.costs.of(id) !== null;
    if (rows === size.whole || this.#isReductionAnnounced || !isKnown) return null;
    this.#isReductionAnnounced = true;
    return `${id} at step ${at.step}: ${describeSize(rows, size)}${rows === 0 ? "" : `, ${why}`}. ${this.#remedy}`;
  }

  #secondsLeftInWindow(): number {
    return (this.#limits.secondsPerWindow ?? Infinity) - this.#clock.secondsInWindow();
  }
}

const noRows: Portion = { rows: 0, deadline: null };

interface AheadOfEnd {
  readonly ahead: readonly Wanted[];
  /** Seconds of measuring so far, and expected for the end. */
  readonly windows: number;
  readonly kept: number;
}

interface Decision {
  readonly rows: number;
  readonly limit: BudgetLimit;
  /** When to cut the measurement off, in seconds after it began. */
  readonly seconds: number;
  readonly why: string;
}

/** Returns `a whole measurement needs 58.2 s`. */
const wholeText = (seconds: number): string => `a whole measurement needs ${secondsText(seconds)}`;

/** The measurement under way: where, when it began, and its rows so far. */
interface Current extends UnderWay {
  readonly size: MeasurementSize;
  readonly at: Progress;
  /** The requests of the window that are not measured yet, with this one. */
  readonly pending: readonly BudgetRequest[];
  readonly began: number;
}
