// Records measured rows and grades them while training continues. Every measurement passes through `record`.
// A snapshot whose rows need grading is written as `grading` first and replaced when grading is done.
import {
  type TrainerCallback,
  type AnyEvaluation,
  type Row,
  type Snapshot,
  type SnapshotKey,
  type Metric,
  type Json,
  type CallOptions,
  type MeasurementWarning,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { errorMessage, jsonRoundTrip, jsonFault } from "@periodic-eval/contracts/options";
import { addWarnings, resolvesWithin } from "@periodic-eval/store";
import { metricKit, primaryMetric, summarize } from "../../evaluations/kit/metric-kit.ts";
import { requireMetrics } from "../../evaluations/kit/define.ts";
import { withSeededRandom } from "../../random/guards.ts";
import { seedOf } from "../../random/streams.ts";
import { reserveComparison, type ComparedSnapshots, type Comparisons } from "./comparisons.ts";
import type { Reporter } from "./reporter.ts";
import type { SnapshotWriter } from "./snapshot-writer.ts";

/** Measured rows on their way to a snapshot. */
export interface Ungraded {
  /** The snapshot as far as it is known, with its final status. */
  readonly base: Snapshot;
  readonly rows: readonly Row[];
  readonly evaluation: AnyEvaluation;
  readonly callback: TrainerCallback | null;
  readonly plan: ComparedSnapshots;
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
      this.#whenGraded(id).then(async () => {
        await this.#grade(ungraded);
        this.#options.reporter.graded?.(ungraded.base);
      }),
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

/** Runs `grade` and checks that it returned every row. */
export async function gradeRows(
  evaluation: AnyEvaluation,
  rows: readonly Row[],
  options: CallOptions,
): Promise<readonly Row[]> {
  const where = `evaluation "${evaluation.name}" grade`;
  const graded = checkRows(await evaluation.grade!(rows, options), where);
  const ids = new Set(graded.map(({ id }) => id));
  const lost = rows.find(({ id }) => !ids.has(id));
  if (lost === undefined) return graded;
  throw new PeriodicEvalError({
    code: "data",
    where,
    got: `no row "${lost.id}"`,
    expected: "each measured row, with its grade",
    fix: "Return every row, with a grade of null if it could not be graded.",
  });
}

/**
 * Checks that rows are JSON and have unique ids, which pair the rows of two measurements. Returns them as they will be read
 * back after a resume.
 */
export function checkRows(rows: unknown, where: string): readonly Row[] {
  checkIds(rows, where);
  for (const row of rows as readonly Row[]) {
    const fault = jsonFault(row);
    if (fault === null) continue;
    throw new PeriodicEvalError({
      code: "data",
      where: `${where}, row "${row.id}"${fault.path}`,
      got: fault.what,
      expected: "a JSON value",
      fix: "Use finite numbers, strings, booleans, arrays and plain objects in rows, and null for an unknown number.",
    });
  }
  return (rows as readonly Row[]).map(jsonRoundTrip);
}

const idFixes = {
  items: "Give every item an id: it pairs its rows in two measurements.",
  rows: "Return the item's id with each row; number the samples of one item.",
};

/** @throws PeriodicEvalError `data` unless the list is an array whose entries have unique ids. */
export function checkIds(list: unknown, where: string, what: keyof typeof idFixes = "rows"): void {
  const refuse = (got: string) => {
    const expected = `an array of ${what} with unique ids`;
    return new PeriodicEvalError({ code: "data", where, got, expected, fix: idFixes[what] });
  };
  if (!Array.isArray(list)) throw refuse(typeof list);
  const seen = new Set<unknown>();
  for (const [index, entry] of (list as readonly (Partial<Row> | null | undefined)[]).entries()) {
    const id: unknown = entry?.id;
    if (typeof id !== "string" || id === "") throw refuse(`the id ${JSON.stringify(id)} at index ${index}`);
    if (seen.has(id)) throw refuse(`the id "${id}" twice (again at index ${index})`);
    seen.add(id);
  }
}

/** Returns the reason why rows must not be summarized; null if there is none. */
export function failureOf(evaluation: AnyEvaluation, rows: readonly Row[]): PeriodicEvalError | null {
  return evaluation.failure?.(rows) ?? null;
}

interface Results {
  readonly metrics: Readonly<Record<string, Metric<Row>>>;
  readonly values: Snapshot["metrics"];
  readonly primary: string | null;
  readonly warnings: readonly MeasurementWarning[];
  /** Keys that existing scripts read. */
  readonly plain: Readonly<Record<string, Json>>;
}

/**
 * Computes metrics from rows. Draws from `Math.random` in them (a bootstrap) come from a stream of the measurement, so that
 * they repeat and leave training's numbers alone.
 *
 * @param seed Names the measurement's random streams.
 */
export function computeResults(evaluation: AnyEvaluation, rows: readonly Row[], seed: string): Results {
  return withSeededRandom(seedOf(seed, "metrics"), () => {
    const where = `evaluation "${evaluation.name}"`;
    const metrics: Readonly<Record<string, Metric<Row>>> = requireMetrics(
      `${where} metrics`,
      evaluation.metrics(metricKit<Row>()),
    );
    const values = summarize(metrics, rows);
    const plain = evaluation.plainKeys?.(values, rows) ?? {};
    const warnings = evaluation.warnings?.(rows, values) ?? [];
    return { metrics, values, primary: primaryMetric(metrics), warnings, plain };
  });
}
