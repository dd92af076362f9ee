import type { TrainerCallback, Progress, Snapshot, Trigger } from "@periodic-eval/contracts";
import { plannedSteps } from "../../schedule/crossings.ts";
import { isEdge, needsMaxSteps } from "../../schedule/triggers.ts";
import { sizeOf, type MeasurementSize, type Wanted } from "./share-seconds.ts";

/** How far a measurement had come when `progress` was called. */
export interface ProgressPoint {
  readonly rows: number;
  /** Seconds since `measure` was called. */
  readonly seconds: number;
  /** Model calls so far. */
  readonly calls: number;
}

/** The progress of one measurement, which shows what its rows cost. */
export interface RecordedProgress {
  readonly points: readonly ProgressPoint[];
  /** The first of several portions; null if all rows were measured at once. */
  readonly firstPortion: Omit<ProgressPoint, "calls"> | null;
  /** Whether its deadline cut it off. */
  readonly isCut: boolean;
  readonly measureSeconds: number;
}

/** The outcome of a measurement. */
export type LearnedMeasurement =
  | {
      readonly id: string;
      readonly progress: RecordedProgress;
      readonly rows: number;
      /** Seconds with everything around it. */
      readonly seconds: number;
    }
  | { readonly adopted: Snapshot };

/** Everything that the governor learned about measurements, by snapshot id. */
export class Learned {
  readonly costs = new MeasurementCosts();
  readonly sizes = new Map<string, MeasurementSize>();
  /** Measurements requested between start and end. */
  readonly requested = new Map<string, number>();
  /** Measurements skipped since the last that was not. */
  readonly skipped = new Map<string, number>();
  /** Ids measured in this session: their first call has compiled its kernels. */
  readonly #warm = new Set<string>();
  firstStep: { readonly steps: number; readonly seconds: number } | null = null;

  /**
   * Learns from the snapshots of earlier sessions that still stand.
   *
   * @param phase The phase whose measurements count as requested; null if they have been counted.
   */
  fromSnapshots(
    snapshots: readonly Snapshot[],
    callbacks: readonly TrainerCallback[],
    phase: string | null,
  ): void {
    for (const { asks = [], id } of callbacks) {
      for (const snapshot of snapshots) {
        const evaluation = asks.find(
          ({ name, version }) => name === snapshot.evaluation && version === snapshot.evaluation_version,
        );
        if (snapshot.id !== id || evaluation === undefined) continue;
        const { timing, step, provenance } = snapshot;
        if (snapshot.phase === phase && step > 0) this.countRequest(id);
        const rows = timing.items;
        if (provenance.items !== null) this.sizes.set(id, sizeOf(evaluation, provenance.items));
        if (rows === 0) continue;
        const { measure_seconds: seconds, guards_seconds: aroundSeconds } = timing;
        this.costs.learn(id, { rows, seconds, afterFirstCall: null, aroundSeconds, isWarm: step > 0 });
      }
    }
  }

  /** Learns how long the first step of the session took, which says little about the others. */
  fromStep(previous: Progress | null, progress: Progress): void {
    if (this.firstStep !== null) return;
    const steps = progress.step - (previous?.step ?? 0);
    const seconds = progress.elapsedSeconds - (previous?.elapsedSeconds ?? 0);
    if (steps > 0) this.firstStep = { steps, seconds };
  }

  /** Learns from a measurement that produced rows: `rows` in all, `seconds` with everything around it. */
  fromMeasurement({ id, progress, ...whole }: Exclude<LearnedMeasurement, { adopted: Snapshot }>): void {
    const { points: all, firstPortion, isCut, measureSeconds } = progress;
    // A further portion pays the fixed cost again.
    const points = firstPortion === null ? all : all.filter(({ rows }) => rows <= firstPortion.rows);
    const last = points.at(-1);
    // A call that was cut off took seconds but returned no rows.
    const { rows, seconds } =
      firstPortion ?? (isCut && last !== undefined ? last : { rows: whole.rows, seconds: measureSeconds });
    const aroundSeconds = whole.seconds - measureSeconds;
    const isWarm = this.#warm.has(id);
    this.#warm.add(id);
    if (rows === 0) return;
    const afterFirstCall = timedAfterFirstCall(points, rows);
    this.costs.learn(id, { rows, seconds, afterFirstCall, aroundSeconds, isWarm });
  }

  countRequest(id: string): void {
    this.requested.set(id, (this.requested.get(id) ?? 0) + 1);
  }

  countDecision(id: string, isSkipped: boolean): void {
    this.skipped.set(id, isSkipped ? (this.skipped.get(id) ?? 0) + 1 : 0);
  }
}

function timedAfterFirstCall(points: readonly ProgressPoint[], rows: number): Timed | null {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined || last.rows - first.rows < rows / 4) return null;
  // Points made after all calls of the model had ended show nothing.
  if (last.calls === first.calls) return null;
  return { rows: last.rows - first.rows, seconds: last.seconds - first.seconds };
}

/** The measured duration of one measurement. */
export interface MeasurementTime {
  readonly rows: number;
  /** Seconds inside `measure`. */
  readonly seconds: number;
  /** The rows after the first model call, if `progress` reported them in between; else null. */
  readonly afterFirstCall: Timed | null;
  /** Seconds around `measure`: guards, writing. */
  readonly aroundSeconds: number;
  /** Whether an earlier call of this session had already compiled kernels and filled caches. */
  readonly isWarm: boolean;
}

export interface Timed {
  readonly rows: number;
  readonly seconds: number;
}

/** The expected duration of a measurement of m rows: `fixed + m · perRow` seconds. */
export interface MeasurementCost {
  readonly fixed: number;
  readonly perRow: number;
}

/** The expected seconds of the measurement at the end. */
export interface EndCost {
  readonly expected: number;
  /** Seconds that the first call alone cost or that recur with every measurement; 0 once later measurements show which. */
  readonly doubtful: number;
}

/** How many of the latest measurements count beside the start: a model may slow down, a pause of the machine passes. */
const remembered = 8;
/**
 * Times 1/√m: the relative difference between the mean cost of m rows and that of all. Two standard errors, if the cost of
 * rows varies by a third.
 */
const scatter = 0.7;

/** Learns from past measurements what further ones will cost, for each snapshot id. */
export class MeasurementCosts {
  /** First the latest first call of most rows, usually the start of the phase, which measures the same rows as its end. */
  readonly #times = new Map<string, readonly MeasurementTime[]>();

  learn(id: string, time: MeasurementTime): void {
    const [start, ...later] = this.#times.get(id) ?? [];
    // Measurements before a start belong to another phase.
    const isStart = start === undefined || (!time.isWarm && time.rows >= start.rows);
    this.#times.set(id, isStart ? [time] : [start, ...[...later, time].slice(-remembered)]);
  }

  /** Returns null if the id was not measured yet. Counts `and` as if it had been learned too. */
  of(id: string, and: MeasurementTime | null = null): MeasurementCost | null {
    const times = this.#with(id, and);
    return times.length === 0 ? null : costOf(times);
  }

  /** Returns the cost of the measurement at the end, which has `rows` rows; null if the id was not measured yet. */
  end(id: string, rows: number, and: MeasurementTime | null = null): EndCost | null {
    const times = this.#with(id, and);
    return times.length === 0 ? null : endOf(times, rows);
  }

  #with(id: string, and: MeasurementTime | null): readonly MeasurementTime[] {
    return [...(this.#times.get(id) ?? []), ...(and === null ? [] : [and])];
  }
}

/**
 * Estimates costs by medians, weighted by rows, so that noise does little harm. The seconds per row come from `progress`,
 * or from how much less than the start a smaller measurement took. The fixed seconds come from warm measurements.
 */
function costOf(all: readonly MeasurementTime[]): MeasurementCost {
  const warm = all.filter(({ isWarm }) => isWarm);
  const judged = warm.length > 0 ? warm : all;
  const rates = all.flatMap((time) => (time.afterFirstCall === null ? [] : [rateOf(time.afterFirstCall)]));
  // A first call makes rows seem more expensive, never cheaper.
  const slope = median(rates.length > 0 ? rates : slopesFrom(all[0]!, warm)) ?? Infinity;
  const rate = median([...rates, ...judged.map(rateOf)])!;
  const perRow = slope > 0 ? Math.min(slope, rate) : rate;
  const around = median(judged.map(({ aroundSeconds }) => ({ value: aroundSeconds, weight: 1 })))!;
  const inside = median(warm.map((time) => ({ value: time.seconds - perRow * time.rows, weight: 1 }))) ?? 0;
  return { fixed: around + Math.max(0, inside), perRow };
}

/**
 * The end measures the same rows as the start, without the cost of a first call. That cost is known if `progress` reported
 * the seconds per row. If not, the end is expected to take as long as the start, within the range that later measurements
 * allow: their few rows may be faster or slower than the average.
 */
function endOf(all: readonly MeasurementTime[], rows: number): EndCost {
  const start = all[0]!;
  const { fixed, perRow } = costOf(all);
  const expected = fixed + perRow * rows;
  const warm = all.filter(({ isWarm }) => isWarm);
  if (warm.length === 0) return { expected, doubtful: Math.max(0, start.seconds - perRow * start.rows) };
  if (start.afterFirstCall !== null || start.rows < rows) return { expected, doubtful: 0 };
  // Every measurement takes the first rows, so two of them cover no more rows than the larger one.
  const most = Math.max(...warm.map((time) => time.rows));
  const band = (scatter * perRow * rows) / Math.sqrt(most);
  const asStart = start.aroundSeconds + start.seconds;
  return { expected: Math.min(Math.max(asStart, expected - band), expected + band), doubtful: 0 };
}

interface Weighed {
  readonly value: number;
  readonly weight: number;
}

const rateOf = ({ rows, seconds }: Timed): Weighed => ({ value: seconds / rows, weight: rows });

/** Estimates seconds per row from measurements smaller than the start; one of nearly its size would only add noise. */
function slopesFrom(start: MeasurementTime, warm: readonly MeasurementTime[]): readonly Weighed[] {
  return warm
    .map((time) => ({ rows: start.rows - time.rows, seconds: start.seconds - time.seconds, of: time.rows }))
    .filter(({ rows }) => Math.abs(rows) >= start.rows / 4)
    .map(({ rows, seconds, of }) => ({
      value: seconds / rows,
      // The number of rows with the same standard error.
      weight: rows ** 2 / (start.rows + of),
    }));
}

/** Returns the weighted median; null if there are no values. */
function median(values: readonly Weighed[]): number | null {
  const sorted = [...values].sort((a, b) => a.value - b.value);
  const half = sorted.reduce((sum, { weight }) => sum + weight, 0) / 2;
  let below = 0;
  for (const [i, { value, weight }] of sorted.entries()) {
    below += weight;
    if (below === half) return (value + sorted[i + 1]!.value) / 2;
    if (below > half) return value;
  }
  return null;
}

/** The first step of a session compiles: while it is the only one known, other steps are assumed to take a tenth of it. */
const firstStepShare = 0.1;

/** The point of the phase from which the rest is predicted. */
export interface Forecast {
  readonly at: Progress;
  readonly callbacks: readonly TrainerCallback[];
  readonly learned: Learned;
}

/** The id that is being measured, and its rows so far, which count as learned. */
export interface UnderWay {
  readonly id: string;
  readonly and: MeasurementTime | null;
}

const rowsOf = (id: string, current: UnderWay | null): MeasurementTime | null =>
  id === current?.id ? current.and : null;

/** Returns the training seconds of the whole phase if its length is known, else `trained`, the seconds so far. */
export function projectSeconds({ at: { step, maxSteps }, learned }: Forecast, trained: number): number {
  if (maxSteps === null || step === 0) return trained;
  const { steps, seconds } = learned.firstStep ?? { steps: 0, seconds: 0 };
  const perStep = step > steps ? (trained - seconds) / (step - steps) : firstStepShare * (trained / step);
  return trained + Math.max(0, maxSteps - step) * Math.max(0, perStep);
}

/**
 * Returns the seconds that the measurements at the end will take: those expected, and those that may come on top.
 *
 * @param current Null between measurements.
 */
export function secondsOfEnd(
  { at: { maxSteps }, callbacks, learned }: Forecast,
  current: UnderWay | null,
): { readonly expected: number; readonly doubtful: number } {
  let expected = 0;
  let doubtful = 0;
  for (const { id: callbackId, triggers = [], asks = [] } of callbacks) {
    const isAtEnd =
      triggers.some((trigger) => isEdge(trigger, "end")) ||
      plannedSteps(triggers, maxSteps)?.at(-1) === maxSteps;
    if (!isAtEnd) continue;
    // The directions of traits are measured at the edges only.
    for (const id of [callbackId, ...asks.slice(1).map(({ name }) => `${callbackId}-${name}`)]) {
      const size = learned.sizes.get(id);
      if (size === undefined) continue;
      const cost = learned.costs.end(id, size.whole, rowsOf(id, current));
      expected += cost?.expected ?? 0;
      doubtful += cost?.doubtful ?? 0;
    }
  }
  return { expected, doubtful };
}

/**
 * Returns the measurements still to come between now and the end, of all callbacks whose cost is known.
 *
 * @param now Ids to be measured at this step; they count too.
 * @param current Null between measurements.
 */
export function measurementsAhead(
  forecast: Forecast,
  projected: number,
  now: ReadonlySet<string>,
  current: UnderWay | null = null,
): readonly Wanted[] {
  const { callbacks, learned } = forecast;
  const planned = callbacks.map((callback) => ({
    id: callback.id,
    count: countAhead(forecast, callback, projected),
  }));
  // A callback may request measurements with other ids than its own, as `escalate` does.
  const others = [...now].filter((id) => callbacks.every((callback) => callback.id !== id));
  return [...planned, ...others.map((id) => ({ id, count: 0 }))].flatMap(({ id, count }) => {
    const cost = learned.costs.of(id, rowsOf(id, current));
    const size = learned.sizes.get(id);
    if (cost === null || size === undefined) return [];
    const measurements = count + (now.has(id) ? 1 : 0);
    return measurements > 0 ? [{ id, size, measurements, ...cost }] : [];
  });
}

/** Returns how many measurements of a callback come after this step and before the end. */
function countAhead(
  { at, learned }: Forecast,
  { id, triggers = [] }: TrainerCallback,
  projected: number,
): number {
  const { maxSteps, elapsedSeconds } = at;
  const ahead = (some: readonly Trigger[], from: number) =>
    plannedSteps(some, maxSteps)?.filter((step) => step > from && step < maxSteps!);
  const steps = ahead(
    triggers.filter((trigger) => !needsMaxSteps([trigger])),
    at.step,
  );
  const percents = ahead(
    triggers.filter((trigger) => needsMaxSteps([trigger])),
    reachedStep(at),
  );
  if (triggers.length > 0 && steps !== undefined) return new Set([...steps, ...percents!]).size;
  // Without a schedule, requests are expected to come as often as before.
  const asBefore = (learned.requested.get(id) ?? 0) * Math.max(0, projected / elapsedSeconds - 1);
  return Number.isFinite(asBefore) ? Math.floor(asBefore) : 0;
}

/** Returns the step up to which shares of the phase were crossed: further than now if the phase has grown since. */
function reachedStep({ step, maxSteps, furthest }: Progress): number {
  if (maxSteps === null || furthest == null) return step;
  return Math.max(step, Math.ceil((furthest.step * maxSteps) / furthest.maxSteps));
}
