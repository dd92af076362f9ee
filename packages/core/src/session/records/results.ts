import {
  type AnyEvaluation,
  type Metric,
  type Row,
  type Json,
  type CallOptions,
  type MeasurementWarning,
  type Snapshot,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { requireMetrics } from "../../evaluations/kit/require-metrics.ts";
import { metricKit, primaryMetric, summarize } from "../../evaluations/kit/metric-kit.ts";
import { withSeededRandom } from "../../guard/randomness.ts";
import { jsonRoundTrip, jsonFault } from "@periodic-eval/contracts/options";
import { seedOf } from "../../random/streams.ts";

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

/** @throws PeriodicEvalError `data` unless the rows are an array, and have unique ids. */
export function checkIds(rows: unknown, where: string): void {
  const refuse = (got: string) =>
    new PeriodicEvalError({
      code: "data",
      where,
      got,
      expected: "an array of rows with unique ids",
      fix: "Return the item's id with each row; number the samples of one item.",
    });
  if (!Array.isArray(rows)) throw refuse(typeof rows);
  const seen = new Set<unknown>();
  for (const row of rows as readonly (Partial<Row> | null | undefined)[]) {
    const id: unknown = row?.id;
    if (seen.has(id)) throw refuse(`the row id "${String(id)}" twice`);
    if (typeof id !== "string" || id === "") throw refuse(`a row with id ${JSON.stringify(id)}`);
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
