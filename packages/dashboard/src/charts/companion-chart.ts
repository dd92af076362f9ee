import * as Plot from "@observablehq/plot";
import type { RunRecord } from "@periodic-eval/core/snapshots";
import { drawChart, phaseColour, thinOut, valueDomain } from "./draw-chart.ts";
import { scaleOf } from "../html/format.ts";
import type { Html } from "../html/html.ts";
import { measurementTitle, curveDescription } from "./measurement-text.ts";
import {
  curveKey,
  hasValue,
  phaseEnd,
  runSteps,
  valuesIn,
  type Measurement,
  type MetricCurve,
} from "./metric-curves.ts";

/** Draws a secondary metric as a small chart with the x axis of the primary chart. */
export function companionChart(run: RunRecord, curve: MetricCurve): Html {
  const scale = scaleOf(curve.unit);
  const ends = curve.measurements
    .filter(hasValue)
    .flatMap(({ value, ci95 }) => [value!, ...(ci95 ?? [])])
    .map((value) => value * scale);
  return drawChart(
    {
      width: 300,
      height: 132,
      marginTop: 8,
      marginRight: 8,
      marginBottom: 20,
      marginLeft: 40,
      x: { domain: [0, runSteps(run)], label: null },
      y: { domain: valueDomain(ends, { minSpan: 1e-9, bounds: [-Infinity, Infinity] }), label: null },
      marks: [
        Plot.gridY({ ticks: 3, stroke: "var(--line)", strokeOpacity: 1 }),
        Plot.axisY({ ticks: 3, tickSize: 0, fill: "var(--muted)", fontSize: 11 }),
        Plot.axisX({
          ticks: 4,
          tickSize: 0,
          tickPadding: 7,
          fill: "var(--muted)",
          fontSize: 11,
          label: null,
        }),
        ...run.phases.flatMap((phase, index) => {
          const measurements = valuesIn(curve, index);
          const bounded = measurements.filter(({ ci95 }) => ci95 !== null);
          const stroke = phaseColour(index);
          const place = { x: "runStep", y: ({ value }: Measurement) => value! * scale };
          return [
            Plot.rect([phase], {
              x1: phase.runStepOffset,
              x2: phaseEnd(phase),
              fill: stroke,
              fillOpacity: 0.06,
            }),
            Plot.areaY(bounded, {
              x: "runStep",
              y1: ({ ci95 }: Measurement) => ci95![0] * scale,
              y2: ({ ci95 }: Measurement) => ci95![1] * scale,
              fill: stroke,
              fillOpacity: 0.15,
            }),
            Plot.lineY(measurements, { ...place, stroke, strokeWidth: 1.75 }),
            Plot.dot(thinOut(measurements), { ...place, r: 2.5, fill: stroke }),
            Plot.dot(thinOut(measurements), {
              ...place,
              r: 10,
              fill: "transparent",
              title: (measurement: Measurement) => measurementTitle(measurement, curve),
            }),
          ];
        }),
      ],
    },
    { description: curveDescription(curve), curve: curveKey(curve.callback, curve.metric) },
  );
}
