import * as Plot from "@observablehq/plot";
import { valueDomain } from "./draw-chart.ts";

/** Each large chart is drawn for wide and for narrow screens, because scaling one chart would shrink its text. */
export interface ChartSize {
  readonly width: number;
  readonly height: number;
  readonly isNarrow: boolean;
}

/** Returns the frame of a large chart over run steps, in percent for a share. */
export function largeChart(
  values: readonly number[],
  { steps, unit, size }: { readonly steps: number; readonly unit: string; readonly size: ChartSize },
): Plot.PlotOptions {
  const isShare = unit === "share";
  const bounds = isShare ? ([0, 100] as const) : ([-Infinity, Infinity] as const);
  return {
    width: size.width,
    height: size.height,
    marginTop: 46,
    marginRight: size.isNarrow ? 10 : 24,
    marginBottom: 40,
    marginLeft: size.isNarrow ? 40 : 56,
    x: { domain: [0, steps], label: null, ticks: ticksOf(size), tickSize: 0, tickPadding: 9 },
    y: { domain: valueDomain(values, { minSpan: isShare ? 24 : 1e-9, bounds }), label: null },
  };
}

/** Position of a phase's name in a large chart: above the phase's left end. */
export const phaseLabel = {
  frameAnchor: "top-left",
  textAnchor: "start",
  dx: 1,
  dy: -33,
  fontSize: 13,
  fontWeight: 600,
} as const;

const ticksOf = ({ isNarrow }: ChartSize): number => (isNarrow ? 4 : 9);

/** Returns the grid and the axes of a large chart. */
export function largeAxes({
  unit,
  size,
}: {
  readonly unit: string;
  readonly size: ChartSize;
}): readonly Plot.Markish[] {
  const axis = { tickSize: 0, fill: "var(--muted)", fontSize: 12 };
  return [
    Plot.gridY({ ticks: 5, stroke: "var(--line)", strokeOpacity: 1 }),
    Plot.axisY({
      ...axis,
      ticks: 5,
      tickFormat: (value: number) => (unit === "share" ? `${value} %` : String(value)),
      ...(unit !== "share" &&
        unit !== "" && { label: `↑ ${unit}`, labelAnchor: "top", labelOffset: size.isNarrow ? 40 : 56 }),
    }),
    Plot.axisX({
      ...axis,
      ticks: ticksOf(size),
      tickPadding: 9,
      label: "run step →",
      labelAnchor: "right",
      labelOffset: 36,
    }),
  ];
}
