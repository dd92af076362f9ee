import * as Plot from "@observablehq/plot";
import { parseHTML } from "linkedom";
import { html, trusted, type Html } from "../html/html.ts";
import { evenly } from "../page-data/run-data.ts";

/** Each phase has one colour in charts and tables. The page's style defines it for light and dark mode. */
const phaseColours = 5;
const phaseNumber = (phaseIndex: number): number => (phaseIndex % phaseColours) + 1;
export const phaseColour = (phaseIndex: number): string => `var(--phase-${phaseNumber(phaseIndex)})`;

/** Returns a CSS class that sets the phase's colour: the pages' policy blocks `style` attributes. */
export const phaseAccent = (phaseIndex: number): string => `accent-${phaseNumber(phaseIndex)}`;

export interface ChartText {
  /** One sentence for screen readers. */
  readonly description: string;
  /** Key of the curve in the page's data, for a chart over run steps. */
  readonly curve?: string;
}

/** Draws a plot as SVG without a browser. Plot escapes all strings; the page's style contains the chart's style. */
export function drawChart(options: Plot.PlotOptions, { description, curve }: ChartText): Html {
  const { document } = parseHTML("<!doctype html><html><body></body></html>");
  const figure = Plot.plot({ ...options, document, className: "chart" });
  figure.querySelector("style")?.remove();
  // Plot names its groups, which have no role that allows a name. The chart's own label describes it.
  for (const part of figure.querySelectorAll("[aria-label]")) part.removeAttribute("aria-label");
  // linkedom does not escape "<" in attributes. No string from a file reaches an attribute that Plot writes.
  const key =
    curve !== undefined &&
    html` data-curve="${curve}" data-left="${options.marginLeft}" data-right="${options.marginRight}"`;
  const markup = figure.outerHTML.slice("<svg".length).replaceAll(/<[^>]*>/g, withShortNumbers);
  return html`<svg role="img" aria-label="${description}"${key}${trusted(markup)}`;
}

/** Rounds the places in a tag, such as 88.79999999999998, to hundredths of a unit. */
const withShortNumbers = (tag: string): string =>
  tag.replaceAll(/\d+\.\d{3,}/g, (number) => String(Math.round(100 * Number(number)) / 100));

/**
 * Returns the limits of a value axis: all values with a margin, at least `minSpan` wide, within `bounds`. The axis need not
 * start at zero, because position, not length, shows the value.
 */
export function valueDomain(
  values: readonly number[],
  { minSpan, bounds }: { readonly minSpan: number; readonly bounds: readonly [number, number] },
): [number, number] {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const span = Math.max(minSpan, (high - low) * 1.16);
  const middle = (low + high) / 2;
  const [min, max] = bounds;
  const start = Math.min(Math.max(min, middle - span / 2), Math.max(min, max - span));
  return [start, Math.min(max, start + span)];
}

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

/**
 * Returns the grid and the axes of a chart.
 *
 * @param options.unit Unit of the values; absent: Plot's format of numbers.
 */
export function chartAxes({
  fontSize,
  unit,
  x,
  y,
}: {
  readonly fontSize: number;
  readonly unit?: string;
  readonly x: Plot.AxisXOptions;
  readonly y: Plot.AxisYOptions & { readonly ticks: number };
}): readonly Plot.Markish[] {
  const axis = { tickSize: 0, fill: "var(--muted)", fontSize };
  const tickFormat = (value: number) => (unit === "share" ? `${value} %` : String(value));
  return [
    Plot.gridY({ ticks: y.ticks, stroke: "var(--line)", strokeOpacity: 1 }),
    Plot.axisY({ ...axis, ...(unit !== undefined && { tickFormat }), ...y }),
    Plot.axisX({ ...axis, label: "run step →", labelAnchor: "right", ...x }),
  ];
}

/** Returns the grid and the axes of a large chart. */
export function largeAxes(unit: string, size: ChartSize): readonly Plot.Markish[] {
  const label = { label: `↑ ${unit}`, labelAnchor: "top", labelOffset: size.isNarrow ? 40 : 56 } as const;
  return chartAxes({
    fontSize: 12,
    unit,
    x: { ticks: ticksOf(size), tickPadding: 9, labelOffset: 36 },
    y: { ticks: 5, ...(unit !== "share" && unit !== "" && label) },
  });
}

/** A step of a curve, and its interval; null if it has none. */
export interface IntervalAtStep {
  readonly runStep: number;
  readonly ci95: readonly [low: number, high: number] | null;
}

/** Half of the width of a cap, in units of the view box. */
const capWidth = 3;

/**
 * Draws intervals as a band over the steps. Draws a bar with caps per step if there is one step or if a step has no interval: a band
 * would be invisible, or would have a shape that no values have.
 *
 * @param options.scale The factor from the unit of the intervals to that of the chart.
 * @param options.hasGaps Whether a step of another phase of the curve has no interval: bars in all phases then. Default: false.
 */
export function intervalMarks(
  steps: readonly IntervalAtStep[],
  {
    scale,
    stroke,
    fillOpacity,
    hasGaps = false,
  }: {
    readonly scale: number;
    readonly stroke: string;
    readonly fillOpacity: number;
    readonly hasGaps?: boolean;
  },
): readonly Plot.Markish[] {
  const bounded = steps.flatMap(({ runStep, ci95 }) =>
    ci95 === null ? [] : [{ runStep, low: ci95[0] * scale, high: ci95[1] * scale }],
  );
  if (!hasGaps && steps.length > 1 && bounded.length === steps.length)
    return [Plot.areaY(bounded, { x: "runStep", y1: "low", y2: "high", fill: stroke, fillOpacity })];
  const shown = evenly(bounded);
  const line = { stroke, strokeOpacity: 0.5 };
  const cap = { ...line, x1: "runStep", x2: "runStep", insetLeft: -capWidth, insetRight: -capWidth };
  return [
    Plot.ruleX(shown, { ...line, x: "runStep", y1: "low", y2: "high" }),
    Plot.ruleY(shown, { ...cap, y: "low" }),
    Plot.ruleY(shown, { ...cap, y: "high" }),
  ];
}
