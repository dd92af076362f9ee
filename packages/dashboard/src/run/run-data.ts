import type { RunRecord } from "@periodic-eval/contracts";
import { curveKey, curvesByCallback, runSteps, type MetricCurve } from "../charts/metric-curves.ts";
import { trainingCurves, type TrainingCurve } from "../charts/training-chart.ts";
import type { CurveData, RunData } from "../page-data/run-data.ts";
import { humanizeName } from "../html/format.ts";

/** Returns the numbers behind the charts of a run, for the page's script. */
export function runData(run: RunRecord): RunData {
  return {
    steps: runSteps(run),
    parts: run.phases.map(({ name }) => name),
    partsAre: "phase",
    curves: [
      ...curvesByCallback(run).flatMap(({ primary, companions }) =>
        [...(primary ? [primary] : []), ...companions].map(curveData),
      ),
      ...trainingCurves(run).map(trainingData),
    ],
  };
}

const curveData = (curve: MetricCurve): CurveData => ({
  key: curveKey(curve.callback, curve.metric),
  callback: curve.callback,
  metric: curve.metric,
  name: humanizeName(curve.metric),
  unit: curve.unit,
  higherIsBetter: curve.higherIsBetter,
  points: curve.measurements.map(({ phaseIndex, step, runStep, value, ci95, n, baseline }) => ({
    part: phaseIndex,
    step,
    runStep,
    value,
    ci95,
    n,
    verdict: baseline?.verdict ?? null,
  })),
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
