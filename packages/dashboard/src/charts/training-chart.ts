import * as Plot from "@observablehq/plot";
import type { RunRecord } from "@periodic-eval/contracts";
import { formatValue } from "../html/format.ts";
import type { Html } from "../html/html.ts";
import { evenly } from "../page-data/evenly.ts";
import { curveKey } from "./metric-curves.ts";
import { smallChart } from "./small-chart.ts";
import type { TrainingCurve } from "./training-curves.ts";

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
