import * as Plot from "@observablehq/plot";
import type { PhaseRecord, RunRecord } from "@periodic-eval/contracts";
import type { Html } from "../html/html.ts";
import { drawChart, phaseColour, valueDomain, type ChartText } from "./draw-chart.ts";
import { phaseEnd, runSteps } from "./metric-curves.ts";

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
  const axis = { tickSize: 0, fill: "var(--muted)", fontSize: 11 };
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
        Plot.gridY({ ticks: 3, stroke: "var(--line)", strokeOpacity: 1 }),
        Plot.axisY({
          ...axis,
          ticks: 3,
          tickFormat: (value: number) => (unit === "share" ? `${value} %` : String(value)),
        }),
        Plot.axisX({
          ...axis,
          ticks: 4,
          tickPadding: 7,
          label: "run step →",
          labelAnchor: "right",
          labelOffset: 32,
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
