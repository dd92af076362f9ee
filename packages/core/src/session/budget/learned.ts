import type { TrainerCallback, Progress, Snapshot } from "@periodic-eval/contracts";
import {
  MeasurementCosts,
  type EndCost,
  type MeasurementCost,
  type MeasurementTime,
  type Timed,
} from "./measurement-costs.ts";
import { sizeOf, type MeasurementSize } from "./measurement-size.ts";

/** How far a measurement had come when `progress` was called. */
export interface ProgressPoint {
  readonly rows: number;
  /** Seconds since `measure` was called. */
  readonly seconds: number;
  /** Model calls so far. */
  readonly calls: number;
}

/** The progress of one measurement, which shows what its rows cost. */
export interface MeasurementProgress {
  readonly points: readonly ProgressPoint[];
  /** The first of several portions; null if all rows were measured at once. */
  readonly firstPortion: Omit<ProgressPoint, "calls"> | null;
  /** Whether its deadline cut it off. */
  readonly isCut: boolean;
  readonly measureSeconds: number;
}

/** Everything that the governor learned about measurements, by snapshot id. */
export class Learned {
  readonly #costs = new MeasurementCosts();
  readonly #sizes = new Map<string, MeasurementSize>();
  /** Measurements requested between start and end. */
  readonly #requested = new Map<string, number>();
  /** Measurements skipped since the last that was not. */
  readonly #skipped = new Map<string, number>();
  /** Ids measured in this session: their first call has compiled its kernels. */
  readonly #warm = new Set<string>();
  #firstStep: { readonly steps: number; readonly seconds: number } | null = null;

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
        if (provenance.items !== null) this.#sizes.set(id, sizeOf(evaluation, provenance.items));
        if (rows === 0) continue;
        const { measure_seconds: seconds, guards_seconds: aroundSeconds } = timing;
        this.#costs.learn(id, { rows, seconds, afterFirstCall: null, aroundSeconds, isWarm: step > 0 });
      }
    }
  }

  /** Learns how long the first step of the session took, which says little about the others. */
  fromStep(previous: Progress | null, progress: Progress): void {
    if (this.#firstStep !== null) return;
    const steps = progress.step - (previous?.step ?? 0);
    const seconds = progress.elapsedSeconds - (previous?.elapsedSeconds ?? 0);
    if (steps > 0) this.#firstStep = { steps, seconds };
  }

  /** Learns from a measurement that produced rows: `rows` in all, `seconds` with everything around it. */
  fromMeasurement({
    id,
    progress,
    ...whole
  }: {
    readonly id: string;
    readonly progress: MeasurementProgress;
    readonly rows: number;
    readonly seconds: number;
  }): void {
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
    this.#costs.learn(id, { rows, seconds, afterFirstCall, aroundSeconds, isWarm });
  }

  countRequest(id: string): void {
    this.#requested.set(id, this.requested(id) + 1);
  }

  requested(id: string): number {
    return this.#requested.get(id) ?? 0;
  }

  countDecision(id: string, isSkipped: boolean): void {
    if (isSkipped) this.#skipped.set(id, this.skippedInARow(id) + 1);
    else this.#skipped.delete(id);
  }

  skippedInARow(id: string): number {
    return this.#skipped.get(id) ?? 0;
  }

  setSize(id: string, size: MeasurementSize): void {
    this.#sizes.set(id, size);
  }

  /** Returns the size of a measurement; undefined if the id was never prepared. */
  size(id: string): MeasurementSize | undefined {
    return this.#sizes.get(id);
  }

  get firstStep(): { readonly steps: number; readonly seconds: number } | null {
    return this.#firstStep;
  }

  cost(id: string, and: MeasurementTime | null = null): MeasurementCost | null {
    return this.#costs.of(id, and);
  }

  endCost(id: string, rows: number, and: MeasurementTime | null): EndCost | null {
    return this.#costs.end(id, rows, and);
  }
}

function timedAfterFirstCall(points: readonly ProgressPoint[], rows: number): Timed | null {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined || last.rows - first.rows < rows / 4) return null;
  // Points made after all calls of the model had ended show nothing.
  if (last.calls === first.calls) return null;
  return { rows: last.rows - first.rows, seconds: last.seconds - first.seconds };
}
