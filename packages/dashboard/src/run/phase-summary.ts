import type { Paired, Range } from "@periodic-eval/core";
import { adapterOffId } from "@periodic-eval/core/session";
import type { PhaseRecord, RunRecord } from "@periodic-eval/core/snapshots";
import { placeOf } from "../html/format.ts";
import {
  hasValue,
  curvesByCallback,
  type Measurement,
  type CallbackCurves,
  type MetricCurve,
} from "../charts/metric-curves.ts";

/** What became of one metric in one phase. */
export interface MetricSummary {
  readonly id: string;
  readonly metric: string;
  readonly unit: string;
  /** What the value can be, as far as its snapshots tell. */
  readonly range: Range;
  readonly isPrimary: boolean;
  /** The phase's first firing and its last so far; one that failed or was skipped has no value. */
  readonly start: Measurement;
  readonly end: Measurement;
  /** The end against the baseline; null where there is none, or it is the end itself. */
  readonly change: Paired | null;
  /** Whether `change` is another than end minus start, being over the items alone that both measurements observed, item by item. */
  readonly isOverPairs: boolean;
  /** What `change` is against, where that is not `start`: `em step 0 of capability.adapter_off`. */
  readonly against: string | null;
}

export interface PhaseSummary {
  readonly phase: PhaseRecord;
  readonly phaseIndex: number;
  /** By callback; the primary metric of each first. */
  readonly metrics: readonly MetricSummary[];
}

/** Measured once a phase to be compared with: it has no end. */
const isBaseline = ({ id, on }: CallbackCurves): boolean => on === "base" && id.endsWith(adapterOffId(""));

/** Start against end of every phase, for every metric that was seen in it. */
export function summarizePhases(run: RunRecord): readonly PhaseSummary[] {
  const callbacks = curvesByCallback(run).filter((callback) => !isBaseline(callback));
  return run.phases.map((phase, phaseIndex) => ({
    phase,
    phaseIndex,
    metrics: callbacks.flatMap((callback) =>
      curvesOf(callback).flatMap((curve) => metricSummary(callback, curve, phaseIndex) ?? []),
    ),
  }));
}

const curvesOf = ({ primary, companions }: CallbackCurves): readonly MetricCurve[] => [
  ...(primary ? [primary] : []),
  ...companions,
];

/** Whether a comparison is with this measurement: a run can also be compared with another phase's start, or another run's. */
const isOf = ({ phase, step }: Measurement, paired: Paired | null): boolean =>
  paired?.phase === phase && paired.step === step && paired.id === undefined && paired.run === undefined;

/** Whether a change is not end minus start; sums in another order differ in their last bits. */
const isOther = (delta: number | null, start: number | null, end: number | null): boolean =>
  delta !== null &&
  start !== null &&
  end !== null &&
  Math.abs(delta - (end - start)) > 1e-9 * Math.max(Math.abs(start), Math.abs(end));

function metricSummary(
  callback: CallbackCurves,
  curve: MetricCurve,
  phaseIndex: number,
): MetricSummary | null {
  const measurements = curve.measurements.filter((measurement) => measurement.phaseIndex === phaseIndex);
  const [start, end] = [measurements.at(0), measurements.at(-1)];
  if (!start || !end || !measurements.some(hasValue)) return null;
  const { metric, unit, range } = curve;
  const change = start === end && isOf(start, end.baseline) ? null : end.baseline;
  const isOfStart = change !== null && isOf(start, change);
  return {
    id: callback.id,
    metric,
    unit,
    range,
    isPrimary: curve === callback.primary,
    start,
    end,
    change,
    isOverPairs: isOfStart && isOther(change.delta, start.value, end.value),
    against: change === null || isOfStart ? null : placeOf(change),
  };
}
