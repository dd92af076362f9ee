import type { RunRecord } from "@periodic-eval/contracts";
import {
  curveKey,
  curvesByCallback,
  phaseEnd,
  phaseText,
  runSteps,
  stopOf,
  type MetricCurve,
} from "../charts/metric-curves.ts";
import { trainingCurves, type TrainingCurve } from "../charts/training-curves.ts";
import type { CurveData, PointData, RunData } from "../page-data/run-data.ts";
import { describePaired, formatValue, humanizeName } from "../html/format.ts";

/** Returns the numbers behind the charts of a run, for the page's script. */
export function runData(run: RunRecord): RunData {
  return {
    steps: runSteps(run),
    parts: run.phases.map(({ name }) => name),
    partsAre: "phase",
    phases: run.phases.map((phase) => {
      const { name, maxSteps, runStepOffset: from } = phase;
      const stop = stopOf(run, phase);
      const clean = stop?.cleanStep ?? null;
      return {
        name,
        about: maxSteps === null ? null : phaseText(phase),
        from,
        to: phaseEnd(phase),
        ...(stop && { stop: { met: from + stop.measuredAt, clean: clean === null ? null : from + clean } }),
      };
    }),
    curves: [
      ...curvesByCallback(run).flatMap(({ primary, companions }) =>
        [...(primary ? [primary] : []), ...companions].map((curve) => curveData(run, curve)),
      ),
      ...trainingCurves(run).map(trainingData),
      ...[lossAndHarms(run) ?? []].flat(),
    ],
  };
}

/** Returns a curve of a run as data. */
function curveData(run: RunRecord, curve: MetricCurve): CurveData {
  const baselines = baselinesOf(run, curve);
  return {
    key: curveKey(curve.callback, curve.metric),
    callback: curve.callback,
    metric: curve.metric,
    name: humanizeName(curve.metric),
    unit: curve.unit,
    higherIsBetter: curve.higherIsBetter,
    ...(baselines.some((value) => value !== null) && { baselines }),
    points: curve.measurements.map(
      ({ phaseIndex, step, runStep, value, ci95, n, baseline, status }): PointData => ({
        part: phaseIndex,
        step,
        runStep,
        value,
        ci95,
        n,
        verdict: baseline?.verdict ?? null,
        ...(status !== "complete" && { status }),
        ...(baseline && { change: describePaired(baseline, curve.unit) }),
      }),
    ),
  };
}

/** Returns for each phase the value with which its last measurement is compared; null if it is compared with none of this run. */
export const baselinesOf = (
  { phases }: RunRecord,
  { measurements }: MetricCurve,
): readonly (number | null)[] =>
  phases.map((_, index) => {
    const last = measurements.findLast(({ phaseIndex, value }) => phaseIndex === index && value !== null);
    const isBaseline = ({ phase, step }: MetricCurve["measurements"][number]): boolean =>
      phase === last?.baseline?.phase && step === last.baseline.step;
    return measurements.find(isBaseline)?.value ?? null;
  });

/** The losses of the task, best first: a loss on other rows than those of the step is less noisy. */
const taskLosses = ["eval_loss", "val_loss", "loss"];

/**
 * Returns the task's loss and the harms of a run on one scale, from 0 to 1; null if it has no loss or no harm. A harm is the change of
 * a callback's primary metric for the worse since its first measurement, as a part of the largest one, or of the smallest change that
 * its last comparison detects if that is larger. The loss is the last line, from its lowest to its highest value.
 */
export function lossAndHarms(run: RunRecord): (CurveData & Required<Pick<CurveData, "lines">>) | null {
  const curves = trainingCurves(run).filter(({ points }) => points.length > 1);
  const loss = taskLosses.flatMap((name) => curves.find(({ metric }) => metric === name) ?? []).at(0);
  const harms = curvesByCallback(run).flatMap(({ on, primary }) =>
    on === "base" || primary === null ? [] : (harmPoints(primary) ?? []),
  );
  if (loss === undefined || harms.length === 0) return null;
  const losses = loss.points.map(({ value }) => value);
  const lowest = losses.reduce((least, value) => Math.min(least, value), Infinity);
  const span = losses.reduce((most, value) => Math.max(most, value - lowest), 0) || 1;
  return {
    ...trainingData(loss),
    key: curveKey(null, "loss and harms"),
    metric: "loss_and_harms",
    name: "Loss and harms",
    unit: "share",
    lines: [...harms.map(({ name }) => name), loss.name],
    points: [
      ...harms.flatMap(({ points }, part) => points.map((point) => ({ ...point, part }))),
      ...loss.points.map(({ step, runStep, value }) => ({
        ...unjudged,
        part: harms.length,
        step,
        runStep,
        value: (value - lowest) / span,
        measured: `${Number(value.toPrecision(4))} ${loss.unit}`.trim(),
      })),
    ].sort((a, b) => a.runStep - b.runStep),
  };
}

/** Returns a primary metric as a harm; null if it has no direction or no value. */
function harmPoints({ callback, metric, unit, higherIsBetter, measurements }: MetricCurve) {
  const known = measurements.flatMap(({ value, ...rest }) => (value === null ? [] : [{ ...rest, value }]));
  if (higherIsBetter === null || known.length === 0) return null;
  const sign = higherIsBetter ? -1 : 1;
  const changes = known.map(({ value }) => sign * (value - known[0]!.value));
  const detectable = Math.abs(known.at(-1)!.baseline?.minimal_detectable_change ?? 0);
  const largest = changes.reduce((most, change) => Math.max(most, change), detectable) || 1;
  return {
    name: `${humanizeName(callback)}: ${humanizeName(metric)}`,
    points: known.map(({ step, runStep, value }, at) => ({
      ...unjudged,
      step,
      runStep,
      value: Math.max(0, changes[at]! / largest),
      measured: formatValue(value, unit),
    })),
  };
}

const unjudged = { ci95: null, n: null, verdict: null };

const trainingData = ({ metric, name, unit, points }: TrainingCurve): CurveData => ({
  key: curveKey(null, metric),
  callback: null,
  metric,
  name,
  unit,
  higherIsBetter: null,
  points: points.map(({ phase, ...point }) => ({
    part: phase,
    ...point,
    ...unjudged,
  })),
});
