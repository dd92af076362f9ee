import type { MetricValue, Paired, Range, SnapshotStatus } from "@periodic-eval/core";
import type { PhaseRecord, RunRecord, SeriesPoint } from "@periodic-eval/core/snapshots";

/** One look at one metric. */
export interface Look {
  readonly phase: string;
  readonly phaseIndex: number;
  readonly step: number;
  readonly runStep: number;
  readonly pct: number | null;
  readonly status: SnapshotStatus;
  /** It is of the phase's first step. */
  readonly isAtStart: boolean;
  /** The phase ended there, at its last step or before. */
  readonly isAtEnd: boolean;
  readonly value: number | null;
  readonly ci95: readonly [number, number] | null;
  /** Observed rows; null where the metric was not measured. */
  readonly n: number | null;
  readonly baseline: Paired | null;
}

/** One metric over the whole run. */
export interface Track {
  readonly metric: string;
  readonly unit: string;
  readonly higherIsBetter: boolean | null;
  readonly estimand: MetricValue["estimand"] | null;
  /** What the value can be, as far as its snapshots tell. */
  readonly range: Range;
  /** In run order; a look that gave no value has null. */
  readonly looks: readonly Look[];
}

/** Whether a metric is that of one persona or question (`leakage_rate/doctor`) and not of all. */
export const isOfGroup = (metric: string): boolean => metric.includes("/");

/** Everything one callback found: its primary metric and the others, over all phases. */
export interface Subject {
  readonly id: string;
  readonly evaluation: string;
  readonly on: "model" | "base";
  readonly primary: Track | null;
  readonly companions: readonly Track[];
}

/** The subjects of a run, in order of appearance. */
export function subjectsOf(run: RunRecord): readonly Subject[] {
  const ids = [...new Set(run.phases.flatMap(({ series }) => series.map(({ id }) => id)))];
  return ids.map((id) => subjectOf(run.phases, id));
}

function subjectOf(phases: readonly PhaseRecord[], id: string): Subject {
  const series = phases.flatMap((phase) => phase.series.filter((one) => one.id === id));
  const primaryMetric = series.find((one) => one.primaryMetric !== null)?.primaryMetric ?? null;
  const points = phases.flatMap((phase, phaseIndex) =>
    phase.series
      .filter((one) => one.id === id)
      .flatMap((one) => one.points.map((point) => ({ point, phase: phase.name, phaseIndex }))),
  );
  const metrics = [...new Set(points.flatMap(({ point }) => Object.keys(point.metrics)))];
  const tracks = metrics.map((metric) => trackOf(metric, points)).filter(({ looks }) => looks.some(hasValue));
  return {
    id,
    evaluation: series[0]!.evaluation,
    on: series[0]!.on,
    primary: tracks.find(({ metric }) => metric === primaryMetric) ?? null,
    companions: tracks.filter(({ metric }) => metric !== primaryMetric),
  };
}

interface PlacedPoint {
  readonly point: SeriesPoint;
  readonly phase: string;
  readonly phaseIndex: number;
}

function trackOf(metric: string, points: readonly PlacedPoint[]): Track {
  const described = points.find(({ point }) => point.metrics[metric])?.point.metrics[metric];
  return {
    metric,
    unit: described?.unit ?? "",
    higherIsBetter: described?.higher_is_better ?? null,
    estimand: described?.estimand ?? null,
    range: [described?.range?.[0] ?? -Infinity, described?.range?.[1] ?? Infinity],
    looks: points.map((placed) => lookOf(metric, placed)),
  };
}

function lookOf(metric: string, { point, phase, phaseIndex }: PlacedPoint): Look {
  const value = point.metrics[metric];
  return {
    phase,
    phaseIndex,
    step: point.step,
    runStep: point.runStep,
    pct: point.pct,
    status: point.status,
    isAtStart: point.step === 0 || point.crossed.includes("start"),
    isAtEnd: point.pct === 100 || point.crossed.includes("end"),
    value: value?.value ?? null,
    ci95: value?.ci95 ?? null,
    n: value?.n ?? null,
    baseline: point.paired.baseline?.[metric] ?? null,
  };
}

export const hasValue = ({ value }: Look): boolean => value !== null;

/** The looks of one phase that gave a value. */
export function valuesIn(track: Track, phaseIndex: number): readonly Look[] {
  return track.looks.filter((look) => look.phaseIndex === phaseIndex && hasValue(look));
}

/** Steps of the whole run as far as it is known: planned where a phase knows its length, seen elsewhere. */
export function runSteps(run: RunRecord): number {
  return Math.max(1, ...run.phases.map(phaseEnd));
}

export function phaseEnd({ runStepOffset, maxSteps, snapshots }: PhaseRecord): number {
  return Math.max(runStepOffset + (maxSteps ?? 0), ...snapshots.map(({ run_step }) => run_step));
}
