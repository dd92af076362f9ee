import type { TrainerCallback, Crossing, InterruptedMeasurement } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { describeCrossing } from "../../schedule/triggers.ts";
import { type Requested, measurementAt, newSnapshot, type Position } from "./new-snapshot.ts";
import { callbackName, type Reporter } from "./reporter.ts";
import type { SnapshotWriter } from "./snapshot-writer.ts";
import type { KnownSnapshots } from "./known-snapshots.ts";

/**
 * The measurements that an abort interrupted at the current step, by snapshot id. They have no snapshot: a session that resumes
 * at this step requests them again, on the same weights.
 */
export class Interrupted {
  readonly #known: KnownSnapshots;
  readonly #writer: SnapshotWriter;
  readonly #reporter: Reporter;
  readonly #measurements = new Map<string, InterruptedMeasurement>();

  constructor(known: KnownSnapshots, writer: SnapshotWriter, reporter: Reporter) {
    this.#known = known;
    this.#writer = writer;
    this.#reporter = reporter;
  }

  /** Takes over what a checkpoint's state lists. */
  load(measurements: Readonly<Record<string, InterruptedMeasurement>>): void {
    for (const [id, measurement] of Object.entries(measurements)) this.#measurements.set(id, measurement);
  }

  get isEmpty(): boolean {
    return this.#measurements.size === 0;
  }

  toState(): Readonly<Record<string, InterruptedMeasurement>> {
    return Object.fromEntries(this.#measurements);
  }

  crossedOf(id: string): readonly Crossing[] {
    return this.#measurements.get(id)?.crossed ?? [];
  }

  /** Forgets a measurement that has a snapshot now. */
  settle(id: string): void {
    this.#measurements.delete(id);
  }

  /**
   * Keeps a measurement that an abort interrupted. A partial or failed snapshot that this training already made at the step
   * stands instead.
   */
  async keep(requested: Requested, { phase, progress }: Position, reason: string): Promise<void> {
    const { id, evaluation, crossed, callback, on = "model", plannedComparisons = null } = requested;
    const key = { phase, id, step: progress.step };
    this.#reporter.warn(
      callbackName(callback),
      `"${id}" is not measured at step ${key.step} (${reason}). A resumed run measures it.`,
    );
    if (this.#known.isSettled(key)) return;
    const thresholds = crossed.filter(({ at }) => at !== null);
    if (thresholds.length === 0 && crossed.length > 0) {
      // The resumed phase crosses the end again. It must not find what a longer training left here.
      const left = this.#known.get(key);
      if (left !== null) await this.#writer.supersede(left, "an abort interrupted its repetition");
      return;
    }
    const before = this.crossedOf(id);
    const known = new Set(before.map(describeCrossing));
    const added = thresholds.filter((crossing) => !known.has(describeCrossing(crossing)));
    this.#measurements.set(id, {
      by: callback.id,
      evaluation: { name: evaluation.name, version: evaluation.version },
      on,
      crossed: [...before, ...added],
      plannedComparisons,
    });
  }

  /** Returns requests for the interrupted measurements that their callbacks can still ask for. */
  requests(callbacks: readonly TrainerCallback[]): readonly Requested[] {
    return [...this.#measurements].flatMap(
      ([
        id,
        {
          by,
          evaluation: { name },
          ...rest
        },
      ]) => {
        const callback = callbacks.find((candidate) => candidate.id === by);
        const evaluation = callback?.asks?.find((ask) => ask.name === name);
        return callback === undefined || evaluation === undefined
          ? []
          : [{ ...rest, id, evaluation, callback }];
      },
    );
  }

  /**
   * Records interrupted measurements as skipped when training leaves their step, because their weights are gone.
   *
   * @param isRequested Whether an id is requested again and will be measured with the next step.
   */
  async skip(position: Position, isRequested: (id: string) => boolean): Promise<void> {
    for (const [id, { by, evaluation, crossed, on }] of this.#measurements) {
      if (isRequested(id)) continue;
      const measurement = measurementAt(position, {
        id,
        evaluation,
        on,
        crossed: crossed.map(describeCrossing),
      });
      const skipped = newSnapshot(measurement, { status: "skipped", reason: "aborted; training continued" });
      const left = this.#known.get(skipped);
      const supersede = left === null ? null : "training continued after an abort";
      await this.#writer.commit(skipped, [], { supersede });
      this.#measurements.delete(id);
      this.#reporter.warn(
        callbackName({ id: by }),
        `"${id}" is skipped at step ${skipped.step}: its measurement was aborted, and training continued`,
      );
    }
  }
}

/** Returns why a signal is aborted; null if it is not. */
export function abortReason(signal: AbortSignal): string | null {
  if (!signal.aborted) return null;
  const { reason } = signal as { reason: unknown };
  const isDefault = reason instanceof DOMException && reason.name === "AbortError";
  return isDefault ? "aborted" : `aborted: ${errorMessage(reason)}`;
}
