import type { ConditionStop, PhaseRecord, RunRecord, SeriesPoint } from "@periodic-eval/contracts";
import type { MeasurementWarning, MetricValue, Paired, Range, SnapshotStatus } from "@periodic-eval/core";
import { voidReason, warningsOf } from "@periodic-eval/store";
import { formatValue, plural } from "../html/format.ts";

/** The value of one metric in one snapshot. */
export interface Measurement {
  readonly phase: string;
  readonly phaseIndex: number;
  readonly step: number;
  readonly runStep: number;
  readonly pct: number | null;
  readonly status: SnapshotStatus;
  /** Whether the measurement is at the phase's first step. */
  readonly isAtStart: boolean;
  /** Whether the phase ended at this step, at `max_steps` or early. */
  readonly isAtEnd: boolean;
  readonly value: number | null;
  readonly ci95: readonly [number, number] | null;
  /** The questions that `ci95` is for; null if the metric was not measured. */
  readonly estimand: MetricValue["estimand"] | null;
  /** Number of observed rows; null if the metric was not measured. */
  readonly n: number | null;
  readonly baseline: Paired | null;
  /** The measurement's warnings that concern the metric. */
  readonly warnings: readonly MeasurementWarning[];
}

/** One metric of one callback over the whole run. */
export interface MetricCurve {
  /** The callback's id. */
  readonly callback: string;
  readonly metric: string;
  readonly unit: string;
  readonly higherIsBetter: boolean | null;
  readonly estimand: MetricValue["estimand"] | null;
  /** Possible values of the metric; infinite where the snapshots state no limit. */
  readonly range: Range;
  /** In run order. Failed and skipped measurements have the value null. */
  readonly measurements: readonly Measurement[];
}

/** Whether a metric describes one group, such as a persona or a question (`leakage_rate/doctor`). */
export const isGroupMetric = (metric: string): boolean => metric.includes("/");

/** Returns the group of a group metric: `doctor` of `leakage_rate/doctor`. */
export const groupOf = (metric: string): string => metric.slice(metric.indexOf("/") + 1);

/** Returns the key of a curve, which is unique on a page; of a training metric if there is no callback. */
export const curveKey = (callback: string | null, metric: string): string =>
  callback === null ? `training:${metric}` : `${callback}/${metric}`;

/** All metrics of one callback over all phases. */
export interface CallbackCurves {
  readonly id: string;
  readonly evaluation: string;
  readonly on: "model" | "base";
  readonly primary: MetricCurve | null;
  readonly companions: readonly MetricCurve[];
}

/** Returns the curves of a run's callbacks, in order of appearance. */
export function curvesByCallback(run: RunRecord): readonly CallbackCurves[] {
  const ids = [...new Set(run.phases.flatMap(({ series }) => series.map(({ id }) => id)))];
  return ids.map((id) => callbackCurves(run.phases, id));
}

function callbackCurves(phases: readonly PhaseRecord[], id: string): CallbackCurves {
  const series = phases.flatMap((phase) => phase.series.filter((callback) => callback.id === id));
  const primaryMetric = series.find((callback) => callback.primaryMetric !== null)?.primaryMetric ?? null;
  const points = phases.flatMap((phase, phaseIndex) =>
    phase.series
      .filter((callback) => callback.id === id)
      .flatMap((callback) => callback.points.map((point) => ({ point, phase, phaseIndex }))),
  );
  const metrics = [...new Set(points.flatMap(({ point }) => Object.keys(point.metrics)))];
  // A primary metric without any value is a finding, if a warning says why. The source's rate says what leakage is about.
  const isNamed = (metric: string) => metric === primaryMetric || metric === "source_rate";
  const says = (metric: string) => (measurement: Measurement) =>
    hasValue(measurement) || (isNamed(metric) && voidReason(measurement, metric) !== null);
  const curves = metrics
    .map((metric) => curveOf(id, metric, points))
    .filter(({ metric, measurements }) => measurements.some(says(metric)));
  return {
    id,
    evaluation: series[0]!.evaluation,
    on: series[0]!.on,
    primary: curves.find(({ metric }) => metric === primaryMetric) ?? null,
    companions: curves.filter(({ metric }) => metric !== primaryMetric),
  };
}

interface PlacedPoint {
  readonly point: SeriesPoint;
  readonly phase: PhaseRecord;
  readonly phaseIndex: number;
}

function curveOf(callback: string, metric: string, points: readonly PlacedPoint[]): MetricCurve {
  const described = points.find(({ point }) => point.metrics[metric])?.point.metrics[metric];
  return {
    callback,
    metric,
    unit: described?.unit ?? "",
    higherIsBetter: described?.higher_is_better ?? null,
    estimand: described?.estimand ?? null,
    range: [described?.range?.[0] ?? -Infinity, described?.range?.[1] ?? Infinity],
    measurements: points.map((placed) => measurementOf(metric, placed)),
  };
}

function measurementOf(metric: string, { point, phase, phaseIndex }: PlacedPoint): Measurement {
  const value = point.metrics[metric];
  return {
    phase: phase.name,
    phaseIndex,
    step: point.step,
    runStep: point.runStep,
    pct: point.pct,
    status: point.status,
    isAtStart: point.step === 0 || point.crossed.includes("start"),
    isAtEnd: isAtEnd(point, phase),
    value: value?.value ?? null,
    ci95: value?.ci95 ?? null,
    estimand: value?.estimand ?? null,
    n: value?.n ?? null,
    baseline: point.paired.baseline?.[metric] ?? null,
    warnings: warningsOf(point, metric),
  };
}

/** Whether a measurement is at the end of its phase: at `max_steps`, or where training ended early. */
export const isAtEnd = (
  { pct, crossed, step }: Pick<SeriesPoint, "pct" | "crossed" | "step">,
  { state, closedAt }: Pick<PhaseRecord, "state" | "closedAt">,
): boolean => pct === 100 || crossed.includes("end") || (state === "finished" && step === closedAt);

export const hasValue = ({ value }: Measurement): boolean => value !== null;

/** Returns the length of the run in steps: the planned length of each phase, or its last known step if that is unknown. */
export function runSteps(run: RunRecord): number {
  return Math.max(1, ...run.phases.map(phaseEnd));
}

export function phaseEnd({ runStepOffset, maxSteps, snapshots, training }: PhaseRecord): number {
  const trained = training?.at(-1)?.runStep ?? 0;
  return Math.max(runStepOffset + (maxSteps ?? 0), trained, ...snapshots.map(({ run_step }) => run_step));
}

/** Returns the condition of `stop_when` that ended a phase, or will; null if none did. */
export const stopOf = ({ closings }: RunRecord, { name }: PhaseRecord): ConditionStop | null =>
  closings.findLast(({ phase }) => phase === name)?.stop ?? null;

/** Formats a measurement's value, with its status if it is not complete: `83.0 % (partial)`, `– (failed)`. */
export function formatMeasurement({ value, status }: Measurement, unit: string): string {
  return `${formatValue(value, unit)}${status === "complete" ? "" : ` (${status})`}`;
}

/**
 * Returns how long a phase is and how it ended: `200 steps`; `interrupted at step 23 of 200`, or `after step 20 of 200` if only the
 * last measurement is known; `running, measured at step 40 of 200`; `finished at step 120 of 200` if it ended early.
 */
export function phaseText({ state, closedAt, maxSteps, snapshots }: PhaseRecord): string {
  const measuredAt = snapshots.at(-1)!.step;
  const of = maxSteps === null ? "" : ` of ${maxSteps}`;
  const whole = maxSteps === null ? "unknown length" : plural(maxSteps, "step");
  switch (state) {
    case "interrupted":
      return `interrupted ${closedAt === null ? `after step ${measuredAt}` : `at step ${closedAt}`}${of}`;
    case "running":
      return `running, measured at step ${measuredAt}${of}`;
    case "unknown":
      return whole;
    case "finished":
      return closedAt === null || closedAt === maxSteps ? whole : `finished at step ${closedAt}${of}`;
  }
}
