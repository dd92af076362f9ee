// Records measured rows and grades them while training continues. Every measurement passes through `record`.
// A snapshot whose rows need grading is written as `grading` first and replaced when grading is done.
import type { TrainerCallback, AnyEvaluation, Row, Snapshot, SnapshotKey } from "@periodic-eval/contracts";
import { resolvesWithin, addWarnings } from "@periodic-eval/store";
import { errorMessage } from "@periodic-eval/contracts/options";
import { seedOf } from "../../random/streams.ts";
import { computeResults, failureOf, gradeRows } from "./results.ts";
import { reserveComparison, type ComparisonPlan, type Comparisons } from "./comparisons.ts";
import type { Reporter } from "./reporter.ts";
import type { SnapshotWriter } from "./snapshot-writer.ts";

/** Measured rows on their way to a snapshot. */
export interface Ungraded {
  /** The snapshot as far as it is known, with its final status. */
  readonly base: Snapshot;
  readonly rows: readonly Row[];
  readonly evaluation: AnyEvaluation;
  readonly callback: TrainerCallback | null;
  readonly plan: ComparisonPlan;
}

export interface GradingOptions {
  readonly seed: string;
  readonly clock: () => number;
  readonly signal: AbortSignal;
  readonly writer: SnapshotWriter;
  readonly comparisons: Comparisons;
  readonly reporter: Reporter;
}

export class BackgroundGrading {
  readonly #options: GradingOptions;
  /** The last grading of each id. */
  readonly #gradings = new Map<string, Promise<void>>();

  constructor(options: GradingOptions) {
    this.#options = options;
  }

  /** Records rows: with their results if they need no grading, else as `grading`. */
  async record(ungraded: Ungraded, supersede: string | null): Promise<void> {
    const { writer } = this.#options;
    const { base, rows, evaluation, callback, plan } = ungraded;
    if (evaluation.grade === undefined) {
      let done: Snapshot;
      try {
        done = await this.#withResults(ungraded, rows);
      } catch (error) {
        const failed = this.#failed(ungraded, error);
        await writer.commit(failed, rows, { supersede, failure: { callback, error } });
        return;
      }
      await writer.commit(done, rows, { supersede, callback });
      return;
    }
    const primary = this.#primaryMetric(ungraded);
    const paired = reserveComparison(base.id, plan, primary);
    const waiting: Snapshot = { ...base, status: "grading", primary_metric: primary, paired };
    await writer.commit(waiting, rows, { supersede, callback });
    this.start(ungraded);
  }

  /** Grades in the background. Gradings of one id run one after the other, so that each finds its baseline graded. */
  start(ungraded: Ungraded): void {
    const { id } = ungraded.base;
    this.#gradings.set(
      id,
      this.#whenGraded(id).then(() => this.#grade(ungraded)),
    );
  }

  /** Waits until all grading is done, for at most `seconds`. Returns whether it is done. */
  async drain(seconds: number): Promise<boolean> {
    if (this.#gradings.size === 0) return true;
    return resolvesWithin(Promise.all(this.#gradings.values()), seconds);
  }

  #whenGraded(id: string): Promise<void> {
    return this.#gradings.get(id) ?? Promise.resolve();
  }

  /** Never rejects. If its signal is aborted, the snapshot stays `grading`: a resumed run finishes it. */
  async #grade(ungraded: Ungraded): Promise<void> {
    const { signal, clock, writer } = this.#options;
    if (signal.aborted) return;
    const { base, rows, evaluation, callback } = ungraded;
    const began = clock();
    try {
      // A signal for each grading: listeners that clients of judges leave on it would stay for the session.
      const graded = await gradeRows(evaluation, rows, { signal: AbortSignal.any([signal]) });
      const error = failureOf(evaluation, graded);
      if (error !== null) {
        if (signal.aborted) return;
        await writer.commit(this.#failed(ungraded, error), graded, { failure: { callback, error } });
        return;
      }
      const done = await this.#withResults(ungraded, graded);
      if (signal.aborted) return;
      const timing = { ...base.timing, grade_seconds: clock() - began };
      await writer.commit({ ...done, timing }, graded, { callback });
    } catch (error) {
      if (signal.aborted) return;
      await writer.commit(this.#failed(ungraded, error), rows, { failure: { callback, error } });
    }
  }

  async #withResults({ base, evaluation, plan }: Ungraded, rows: readonly Row[]): Promise<Snapshot> {
    const { metrics, values, primary, warnings, plain } = computeResults(
      evaluation,
      rows,
      this.#seedOf(base),
    );
    const whenGraded = (id: string) => this.#whenGraded(id);
    const compared = await this.#options.comparisons.compare(base, metrics, rows, plan, whenGraded);
    // Plain keys come first, so that they cannot replace a key of the schema.
    const { paired } = compared;
    const done = { ...plain, ...base, metrics: values, primary_metric: primary, paired, warnings: [] };
    // Warnings of the model come first: they concern every metric.
    return addWarnings(done, [...base.warnings, ...warnings, ...compared.warnings]);
  }

  /** Returns the primary metric's name before any row is graded; null if the metrics do not accept an empty list. */
  #primaryMetric({ evaluation, base }: Ungraded): string | null {
    try {
      return computeResults(evaluation, [], this.#seedOf(base)).primary;
    } catch {
      // The same error will be reported if it also occurs with the graded rows.
      return null;
    }
  }

  #seedOf({ phase, id, step }: SnapshotKey): string {
    return seedOf(this.#options.seed, phase, id, step);
  }

  #failed({ base, evaluation }: Ungraded, error: unknown): Snapshot {
    const { reporter } = this.#options;
    reporter.warn(
      `evaluation "${evaluation.name}"`,
      `failed on the rows of "${base.id}" at step ${base.step}: ${errorMessage(error)}`,
    );
    reporter.fail(error);
    return { ...base, status: "failed", reason: errorMessage(error) };
  }
}
