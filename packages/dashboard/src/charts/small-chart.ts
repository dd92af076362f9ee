import * as Plot from "@observablehq/plot";
import type { PhaseRecord, RunRecord } from "@periodic-eval/contracts";
import { scaleOf } from "../html/format.ts";
import type { Html } from "../html/html.ts";
import { evenly } from "../page-data/run-data.ts";
import {
  chartAxes,
  drawChart,
  phaseColour,
  valueDomain,
  type ChartText,
  intervalMarks,
} from "./draw-chart.ts";
import {
  measurementTitle,
  curveDescription,
  phaseEnd,
  runSteps,
  curveKey,
  hasValue,
  valuesIn,
  type Measurement,
  type MetricCurve,
} from "./metric-curves.ts";

/** The content of a small chart, beside its axes and the bands of the phases. */
export interface SmallChart extends ChartText {
  /** All values that the chart shows, ends of intervals included. */
  readonly values: readonly number[];
  readonly unit: string;
  /** Smallest span of the value axis. */
  readonly minSpan: number;
  /** Returns the marks of a phase, drawn in its colour over its band. */
  marksOf(phase: PhaseRecord, phaseIndex: number, stroke: string): readonly Plot.Markish[];
}

/** Draws a small chart with the x axis of the primary charts: run steps, with a band for each phase. */
export function smallChart(run: RunRecord, { values, unit, minSpan, marksOf, ...text }: SmallChart): Html {
  const y = valueDomain(values, { minSpan, bounds: [-Infinity, Infinity] });
  return drawChart(
    {
      width: 300,
      height: 146,
      marginTop: 8,
      marginRight: 8,
      marginBottom: 34,
      marginLeft: 40,
      x: { domain: [0, runSteps(run)], label: null },
      y: { domain: y, label: null },
      marks: [
        ...chartAxes({
          fontSize: 11,
          unit,
          x: { ticks: 4, tickPadding: 7, labelOffset: 32 },
          y: { ticks: 3 },
        }),
        ...run.phases.flatMap((phase, index) => {
          const fill = phaseColour(index);
          const band = { x1: phase.runStepOffset, x2: phaseEnd(phase), fill, fillOpacity: 0.06 };
          return [Plot.rect([phase], band), ...marksOf(phase, index, fill)];
        }),
      ],
    },
    text,
  );
}

/** Draws a secondary metric as a small chart. */
export function companionChart(run: RunRecord, curve: MetricCurve): Html {
  const scale = scaleOf(curve.unit);
  const measured = curve.measurements.filter(hasValue);
  const hasGaps = measured.some(({ ci95 }) => ci95 === null);
  const values = measured
    .flatMap(({ value, ci95 }) => [value!, ...(ci95 ?? [])])
    .map((value) => value * scale);
  return smallChart(run, {
    values,
    unit: curve.unit,
    minSpan: 1e-9,
    description: curveDescription(curve),
    curve: curveKey(curve.callback, curve.metric),
    marksOf(_phase, index, stroke) {
      const measurements = valuesIn(curve, index);
      const place = { x: "runStep", y: ({ value }: Measurement) => value! * scale };
      return [
        ...intervalMarks(measurements, { scale, stroke, fillOpacity: 0.15, hasGaps }),
        Plot.lineY(measurements, { ...place, stroke, strokeWidth: 1.75 }),
        Plot.dot(evenly(measurements), { ...place, r: 2.5, fill: stroke }),
        Plot.dot(evenly(measurements), {
          ...place,
          r: 10,
          fill: "transparent",
          title: (measurement: Measurement) => measurementTitle(measurement, curve),
        }),
      ];
    },
  });
}
