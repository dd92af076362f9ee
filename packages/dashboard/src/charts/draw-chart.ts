import * as Plot from "@observablehq/plot";
import { parseHTML } from "linkedom";
import { html, trusted, type Html } from "../html/html.ts";

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
  return html`<svg role="img" aria-label="${description}"${key}${trusted(figure.outerHTML.slice("<svg".length))}`;
}

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
