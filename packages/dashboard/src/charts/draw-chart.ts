import * as Plot from "@observablehq/plot";
import { parseHTML } from "linkedom";
import { html, trusted, type Html } from "../html/html.ts";

/** One colour per phase, the same in charts and tables; defined in the page's style, light and dark. */
const phaseColours = 5;
const phaseNumber = (phaseIndex: number): number => (phaseIndex % phaseColours) + 1;
export const phaseColour = (phaseIndex: number): string => `var(--phase-${phaseNumber(phaseIndex)})`;

/** The class of an element whose accent is the phase's colour; pages allow no `style` attribute. */
export const phaseAccent = (phaseIndex: number): string => `accent-${phaseNumber(phaseIndex)}`;

export interface ChartText {
  /** What the picture shows, in one sentence, for those who do not see it. */
  readonly description: string;
}

/** Draws a plot on the server. Plot escapes every text it is given; its style stands in that of the page. */
export function drawChart(options: Plot.PlotOptions, { description }: ChartText): Html {
  const { document } = parseHTML("<!doctype html><html><body></body></html>");
  const figure = Plot.plot({ ...options, document, className: "chart" });
  figure.querySelector("style")?.remove();
  // What writes the drawing leaves "<" in attributes as it is; texts of files stand in none of its own.
  return html`<svg role="img" aria-label="${description}"${trusted(figure.outerHTML.slice("<svg".length))}`;
}

/** As many points as can be told apart in a drawing, evenly drawn, the first and the last among them; lines have all. */
export function distinct<T>(points: readonly T[], most = 120): readonly T[] {
  if (points.length <= most) return points;
  const every = (points.length - 1) / (most - 1);
  return Array.from({ length: most }, (_, at) => points[Math.round(at * every)]!);
}

/**
 * Limits of a value axis: the values and their intervals with some air, at least `leastSpan` wide, within `bounds`.
 * An axis need not start at zero here: position, not length, carries the value.
 */
export function valueDomain(
  values: readonly number[],
  { leastSpan, bounds }: { readonly leastSpan: number; readonly bounds: readonly [number, number] },
): [number, number] {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const span = Math.max(leastSpan, (high - low) * 1.16);
  const middle = (low + high) / 2;
  const [least, most] = bounds;
  const start = Math.min(Math.max(least, middle - span / 2), Math.max(least, most - span));
  return [start, Math.min(most, start + span)];
}
