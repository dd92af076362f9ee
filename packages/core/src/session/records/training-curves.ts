import type { SnapshotStore, TrainingPoint } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import type { Reporter } from "./reporter.ts";

/** Seconds of training between two writes. */
const secondsBetweenWrites = 2;
/** Values of each metric that stay when a phase is thinned out, and points of a phase that are thinned out. */
const keptValues = 2000;
const mostPoints = 4000;
/** Not checked when it comes from a training loop. */
type Metrics = Readonly<Record<string, unknown>> | null;

/**
 * Metrics that the trainer of a phase logs, on their way to the store. A step adds its numbers to a buffer; the buffer is written beside
 * training every few seconds, and at windows, checkpoints and the end. An error is reported once and never stops training.
 */
export class TrainingCurves {
  readonly #store: SnapshotStore;
  readonly #phase: string;
  readonly #reporter: Reporter;
  readonly #lost: () => Error | null;
  #buffer: { readonly step: number; readonly runStep: number; readonly metrics: Metrics }[] = [];
  #points: readonly TrainingPoint[] = [];
  #thinnedAbove = mostPoints;
  #writtenAt = -Infinity;
  /** Whether the next write replaces the file: after a kill or a failed append its last line may be unfinished. */
  #replaces = true;
  /** Whether the file lacks points, or has points that were removed. */
  #isBehind = false;
  #hasWarned = false;
  #hasOnlyZeroRates: boolean | null = null;
  #writing: Promise<void> | null = null;

  /** @param lost Why nothing can be written any more; null while it can. */
  constructor(
    store: SnapshotStore,
    phase: string,
    reporter: Reporter,
    lost: () => Error | null = () => null,
  ) {
    this.#store = store;
    this.#phase = phase;
    this.#reporter = reporter;
    this.#lost = lost;
  }

  /** Removes the points after the step at which the phase begins or resumes. */
  async begin(step: number): Promise<void> {
    const { recordTraining, training } = this.#store;
    if (recordTraining === undefined || training === undefined) return;
    const stored = await this.#store.training!(this.#phase).catch(() => []);
    this.#points = stored.filter((point) => point.step <= step);
    for (const { metrics } of this.#points) this.#noteRate(metrics["learning_rate"]);
    this.#isBehind = this.#points.length < stored.length;
    await this.write();
  }

  /** Whether no step can have changed the weights yet: the trainer logged only learning rates of 0, with which warm-up begins. */
  get isWarmingUp(): boolean {
    return this.#hasOnlyZeroRates === true;
  }

  #noteRate(rate: unknown): void {
    if (typeof rate === "number") this.#hasOnlyZeroRates = (this.#hasOnlyZeroRates ?? true) && rate === 0;
  }

  /** Keeps the metrics of a step. Cheap: it neither copies nor writes. */
  add(step: number, runStep: number, metrics: Metrics): void {
    this.#noteRate(metrics?.["learning_rate"]);
    if (this.#store.recordTraining !== undefined) this.#buffer.push({ step, runStep, metrics });
  }

  /**
   * Starts a write if the last one was long enough ago.
   *
   * @param seconds Seconds of training so far.
   */
  writeIfDue(seconds: number): void {
    if (this.#buffer.length === 0 || this.#writing !== null) return;
    if (seconds - this.#writtenAt < secondsBetweenWrites) return;
    this.#writtenAt = seconds;
    void this.write();
  }

  /** Writes the buffer. Never rejects. */
  async write(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
    if (this.#buffer.length === 0 && !this.#isBehind) return;
    this.#writing = this.#writeBuffer().finally(() => (this.#writing = null));
    await this.#writing;
  }

  async #writeBuffer(): Promise<void> {
    const replaces = this.#replaces;
    this.#replaces = this.#isBehind = true;
    try {
      const added = this.#buffer.flatMap(({ metrics, ...at }) => this.#point(at, metrics));
      this.#buffer = [];
      this.#points = [...this.#points, ...added];
      const isFull = this.#points.length > this.#thinnedAbove;
      if (isFull) this.#thinOut();
      const [phase, replace] = [this.#phase, replaces || isFull];
      await this.#store.recordTraining!({ phase, points: replace ? this.#points : added, replace });
      this.#replaces = this.#isBehind = false;
    } catch (error) {
      if (this.#lost() === null && !this.#hasWarned)
        this.#reporter.warn("training curves", `not written: ${errorMessage(error)}`);
      this.#hasWarned = true;
    }
  }

  #thinOut(): void {
    this.#points = thinnedOut(this.#points, keptValues);
    this.#thinnedAbove = Math.max(mostPoints, 2 * this.#points.length);
  }

  #point(
    at: { readonly step: number; readonly runStep: number },
    metrics: Metrics,
  ): readonly TrainingPoint[] {
    const values = Object.entries(metrics ?? {}).filter(
      (pair): pair is [string, number] => typeof pair[1] === "number",
    );
    if (values.length === 0) return [];
    const finite = values.map(([name, value]) => [name, Number.isFinite(value) ? value : null]);
    return [{ ...at, metrics: Object.fromEntries(finite) as TrainingPoint["metrics"] }];
  }
}

/**
 * Thins out the points of a phase by step, for each metric alone, so that a rare metric keeps all its values: of every w steps the
 * first value stays, where w is the smallest power of two that leaves at most `most` values.
 */
export function thinnedOut(points: readonly TrainingPoint[], most: number): readonly TrainingPoint[] {
  const names = new Set(points.flatMap(({ metrics }) => Object.keys(metrics)));
  const widths = new Map([...names].map((name) => [name, widthFor(points, name, most)]));
  const taken = new Set<string>();
  return points.flatMap((point) => {
    const entries = Object.entries(point.metrics).filter(([name]) => {
      const bucket = `${Math.floor(point.step / widths.get(name)!)} ${name}`;
      const isFirst = !taken.has(bucket);
      taken.add(bucket);
      return isFirst;
    });
    return entries.length === 0 ? [] : [{ ...point, metrics: Object.fromEntries(entries) }];
  });
}

function widthFor(points: readonly TrainingPoint[], name: string, most: number): number {
  const steps = points.filter(({ metrics }) => Object.hasOwn(metrics, name)).map(({ step }) => step);
  let width = 1;
  while (new Set(steps.map((step) => Math.floor(step / width))).size > most) width *= 2;
  return width;
}
