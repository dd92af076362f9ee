import * as Plot from "@observablehq/plot";
import type { RunRecord } from "@periodic-eval/contracts";
import { formatValue, capitalized, humanizeName } from "../html/format.ts";
import type { Html } from "../html/html.ts";
import { evenly } from "../page-data/run-data.ts";
import { curveKey } from "./metric-curves.ts";
import { smallChart } from "./small-chart.ts";

/** Points of a line. More would make the page heavy and change no pixel. */
const maxPoints = 600;

/** Draws a training metric with the x axis of the measurements. */
export function trainingChart(run: RunRecord, curve: TrainingCurve): Html {
  const values = curve.points.map(({ value }) => value);
  return smallChart(run, {
    values,
    unit: curve.unit,
    minSpan: minSpanOf(values),
    description: descriptionOf(curve),
    curve: curveKey(null, curve.metric),
    marksOf(_phase, index, stroke) {
      const points = curve.points.filter((point) => point.phase === index);
      const place = { x: "runStep", y: "value" };
      return [
        Plot.lineY(evenly(points, maxPoints), { ...place, stroke, strokeWidth: 1.5 }),
        // A single point draws no line.
        Plot.dot(points.length === 1 ? points : [], { ...place, r: 2.5, fill: stroke }),
      ];
    },
  });
}

/** A constant is drawn on an axis of 2 % of its value, whose ticks have few digits. */
const minSpanOf = (values: readonly number[]): number =>
  Math.max(1e-9, 0.02 * Math.max(...evenly(values, maxPoints).map(Math.abs)));

function descriptionOf({ name, unit, points }: TrainingCurve): string {
  const [first, last] = [points[0]!, points.at(-1)!];
  const text = ({ value, runStep }: typeof first) => `${formatValue(value, unit)} at run step ${runStep}`;
  return first === last ? `${name}: ${text(first)}.` : `${name}: from ${text(first)} to ${text(last)}.`;
}

/** One metric that the trainer logged, over the whole run. */
export interface TrainingCurve {
  readonly metric: string;
  readonly name: string;
  readonly unit: string;
  /** In run order, without missing and infinite values. */
  readonly points: readonly TrainingValue[];
}

interface TrainingValue {
  readonly phase: number;
  readonly step: number;
  readonly runStep: number;
  readonly value: number;
}

/** Names and units of the usual metrics, in the order of their charts. */
const known: Readonly<Record<string, readonly [name: string, unit: string]>> = {
  loss: ["training loss", "nats"],
  eval_loss: ["validation loss", "nats"],
  val_loss: ["validation loss", ""],
  learning_rate: ["learning rate", ""],
  tokens_per_second: ["tokens per second", ""],
};

/** Returns the curves that a run's trainer logged: the usual metrics first, then the others by name. */
export function trainingCurves(run: RunRecord): readonly TrainingCurve[] {
  const values = run.phases.flatMap(({ training = [] }, phase) =>
    training.flatMap(({ step, runStep, metrics }) =>
      Object.entries(metrics).flatMap(([metric, value]) =>
        value !== null && Number.isFinite(value) ? [{ metric, point: { phase, step, runStep, value } }] : [],
      ),
    ),
  );
  const metrics = [...new Set(values.map(({ metric }) => metric))];
  const order = Object.keys(known);
  const rank = (metric: string) => (order.includes(metric) ? order.indexOf(metric) : order.length);
  return metrics
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map((metric) => {
      const [name, unit] = Object.hasOwn(known, metric) ? known[metric]! : [humanizeName(metric), ""];
      return {
        metric,
        name: capitalized(name),
        unit,
        points: values.filter((one) => one.metric === metric).map(({ point }) => point),
      };
    });
}
