import type { RunRecord } from "@periodic-eval/contracts";
import {
  curveKey,
  curvesByCallback,
  phaseEnd,
  phaseText,
  runSteps,
  type MetricCurve,
} from "../charts/metric-curves.ts";
import { trainingCurves, type TrainingCurve } from "../charts/training-curves.ts";
import type { CurveData, PointData, RunData } from "../page-data/run-data.ts";
import { describePaired, humanizeName } from "../html/format.ts";

/** Returns the numbers behind the charts of a run, for the page's script. */
export function runData(run: RunRecord): RunData {
  return {
    steps: runSteps(run),
    parts: run.phases.map(({ name }) => name),
    partsAre: "phase",
    phases: run.phases.map((phase) => ({
      name: phase.name,
      about: phase.maxSteps === null ? null : phaseText(phase),
      from: phase.runStepOffset,
      to: phaseEnd(phase),
    })),
    curves: [
      ...curvesByCallback(run).flatMap(({ primary, companions }) =>
        [...(primary ? [primary] : []), ...companions].map((curve) => curveData(run, curve)),
      ),
      ...trainingCurves(run).map(trainingData),
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
    ci95: null,
    n: null,
    verdict: null,
  })),
});
