import type {
  AnyEvaluation,
  Metric,
  MetricKit,
  Row,
  Snapshot,
  StopCondition,
} from "@periodic-eval/contracts";
import { defineEvaluation } from "../../evaluations/kit/define.ts";
import { primaryMetric, summarize } from "../../evaluations/kit/metric-kit.ts";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { everySteps } from "../../schedule/triggers.ts";
import { compareMeasurements } from "../../statistics/compare.ts";
import { alphaOfComparison } from "../../statistics/planned-comparisons.ts";
import { spentBy } from "../records/comparisons.ts";
import { StopWhen } from "./stop-when.ts";

/** A simulated evaluation: its metrics, and the rows of each measurement, of which the first is the start. */
export interface SimulatedEvaluation {
  readonly metrics: Readonly<Record<string, Metric<Row>>>;
  readonly measurements: readonly (readonly Row[])[];
}

/**
 * Returns the measurement at which the session's conditions stop a simulated run; null if they do not. The snapshots have the numbers, the
 * comparisons and the levels of a session.
 */
export async function measurementOfStop(
  evaluations: Readonly<Record<string, SimulatedEvaluation>>,
  conditions: readonly StopCondition[],
  seed: string,
): Promise<number | null> {
  const progress = {
    phase: "train",
    current: { step: 0 },
    inRun: () => ({ ...progress.current, maxSteps: null }),
  };
  const earlier: Snapshot[] = [];
  const known = { settledOf: (_phase: string, of: string) => earlier.filter(({ id }) => id === of) };
  const stopWhen = new StopWhen({
    conditions,
    callbacks: Object.entries(evaluations).map(([id, { metrics }]) => callbackOf(id, metrics)),
    progress,
    control: { requestStop: () => undefined },
    records: { known, store: {} },
    log: {},
  } as never);
  const spent = new Map<string, number[]>();
  const count = Math.max(...Object.values(evaluations).map(({ measurements }) => measurements.length));
  for (let step = 0; step < count; step++) {
    progress.current = { step };
    for (const [id, { metrics, measurements }] of Object.entries(evaluations)) {
      const rows = measurements[step];
      if (rows === undefined) continue;
      const levels = spent.get(id) ?? [];
      const snapshot = snapshotOf(id, step, { metrics, rows, start: measurements[0]!, levels, seed });
      const level = spentBy(snapshot);
      if (level !== null) spent.set(id, [...levels, level]);
      await stopWhen.check(snapshot);
      earlier.push(snapshot);
      if (stopWhen.stop !== null) return step;
    }
  }
  return null;

  function snapshotOf(
    id: string,
    step: number,
    of: {
      readonly metrics: SimulatedEvaluation["metrics"];
      readonly rows: readonly Row[];
      readonly start: readonly Row[];
      readonly levels: readonly number[];
      readonly seed: string;
    },
  ): Snapshot {
    const primary = primaryMetric(of.metrics);
    const planned = evaluations[id]!.measurements.length - 1;
    const alpha = step === 0 ? null : alphaOfComparison({ spent: of.levels, planned });
    const start = { rows: of.start, phase: "train", step: 0 };
    const options = { seed: `${of.seed}/${id}/${step}`, primary, alpha };
    return {
      id,
      phase: "train",
      step,
      run_step: step,
      max_steps: evaluations[id]!.measurements.length - 1,
      status: "complete",
      primary_metric: primary,
      metrics: summarize(of.metrics, of.rows),
      paired: {
        baseline: alpha === null ? null : compareMeasurements(of.metrics, of.rows, start, options),
        previous: null,
      },
      warnings: [],
    } as unknown as Snapshot;
  }
}

const callbackOf = (name: string, metrics: SimulatedEvaluation["metrics"]) =>
  new PeriodicCallback(
    defineEvaluation({
      name,
      version: "1",
      needs: [],
      items: () => [],
      measure: async (): Promise<readonly Row[]> => [],
      metrics: (_kit: MetricKit<Row>) => metrics,
    }) as AnyEvaluation,
    { id: name, schedule: [everySteps(1)] },
  );
