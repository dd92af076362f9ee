import * as Plot from "@observablehq/plot";
import type { RunRecord } from "@periodic-eval/core/snapshots";
import { formatValue } from "../html/format.ts";
import type { Html } from "../html/html.ts";
import { drawChart, phaseColour, thinOut, valueDomain } from "./draw-chart.ts";
import { curveKey, phaseEnd, runSteps } from "./metric-curves.ts";
import type { TrainingCurve } from "./training-curves.ts";

/** Points of a line. More would make the page heavy and change no pixel. */
const maxPoints = 600;

/** Draws a training metric with the x axis of the measurements. */
export function trainingChart(run: RunRecord, curve: TrainingCurve): Html {
  const values = curve.points.map(({ value }) => value);
  return drawChart(
    {
      width: 480,
      height: 150,
      marginTop: 8,
      marginRight: 10,
      marginBottom: 20,
      marginLeft: 52,
      x: { domain: [0, runSteps(run)], label: null },
      y: {
        domain: valueDomain(values, { minSpan: minSpanOf(values), bounds: [-Infinity, Infinity] }),
        label: null,
      },
      marks: [
        Plot.gridY({ ticks: 3, stroke: "var(--line)", strokeOpacity: 1 }),
        Plot.axisY({ ticks: 3, tickSize: 0, fill: "var(--muted)", fontSize: 11 }),
        Plot.axisX({
          ticks: 5,
          tickSize: 0,
          tickPadding: 7,
          fill: "var(--muted)",
          fontSize: 11,
          label: null,
        }),
        ...run.phases.flatMap((phase, index) => {
          const points = curve.points.filter((point) => point.phase === index);
          const stroke = phaseColour(index);
          const place = { x: "runStep", y: "value" };
          return [
            Plot.rect([phase], {
              x1: phase.runStepOffset,
              x2: phaseEnd(phase),
              fill: stroke,
              fillOpacity: 0.06,
            }),
            Plot.lineY(thinOut(points, maxPoints), { ...place, stroke, strokeWidth: 1.5 }),
            // A single point draws no line.
            Plot.dot(points.length === 1 ? points : [], { ...place, r: 2.5, fill: stroke }),
          ];
        }),
      ],
    },
    { description: descriptionOf(curve), curve: curveKey(null, curve.metric) },
  );
}

/** A constant is drawn on an axis of 2 % of its value, whose ticks have few digits. */
const minSpanOf = (values: readonly number[]): number =>
  Math.max(1e-9, 0.02 * Math.max(...thinOut(values, maxPoints).map(Math.abs)));

function descriptionOf({ name, unit, points }: TrainingCurve): string {
  const [first, last] = [points[0]!, points.at(-1)!];
  const text = ({ value, runStep }: typeof first) => `${formatValue(value, unit)} at run step ${runStep}`;
  return first === last ? `${name}: ${text(first)}.` : `${name}: from ${text(first)} to ${text(last)}.`;
}
