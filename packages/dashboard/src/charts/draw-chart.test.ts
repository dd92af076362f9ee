import type * as Plot from "@observablehq/plot";
import { parseHTML } from "linkedom";
import { expect, it } from "vitest";
import { drawChart, intervalMarks, type IntervalAtStep } from "./draw-chart.ts";

/** Returns the bands, bars and caps of a chart of 101 × 101 units without margins. */
function drawn(steps: readonly IntervalAtStep[]) {
  const marks = intervalMarks(steps, { scale: 100, stroke: "red", fillOpacity: 0.1 });
  const margins = { marginTop: 0, marginRight: 0, marginBottom: 0, marginLeft: 0 };
  const scales = { x: { domain: [0, 100], range: [0, 100] }, y: { domain: [0, 100], range: [100, 0] } };
  const options: Plot.PlotOptions = { width: 101, height: 101, ...margins, ...scales, axis: null };
  const chart = drawChart({ ...options, marks: [...marks] }, { description: "a chart" });
  const { document } = parseHTML(chart.markup);
  const numbers = (line: Element) =>
    ["x1", "x2", "y1", "y2"].map((name) => Math.round(Number(line.getAttribute(name))));
  return {
    bands: document.querySelectorAll("path").length,
    lines: [...document.querySelectorAll("line")].map(numbers),
  };
}

it("draws one band if every step has an interval", () => {
  const steps = [0, 50, 100].map((runStep): IntervalAtStep => ({ runStep, ci95: [0.2, 0.4] }));
  expect(drawn(steps)).toEqual({ bands: 1, lines: [] });
});

it("draws a single step as a bar from the lower to the upper end, with caps", () => {
  expect(drawn([{ runStep: 50, ci95: [0, 1] }])).toEqual({
    bands: 0,
    lines: [
      [50, 50, 100, 0],
      [47, 53, 100, 100],
      [47, 53, 0, 0],
    ],
  });
});

it("draws no band if a step has no interval, but one bar for each other step", () => {
  const steps: readonly IntervalAtStep[] = [
    { runStep: 0, ci95: [0, 0.4] },
    { runStep: 40, ci95: [0, 0.4] },
    { runStep: 80, ci95: null },
  ];
  const { bands, lines } = drawn(steps);
  expect(bands).toBe(0);
  expect(lines.filter(([x1, x2]) => x1 === x2).map(([x1]) => x1)).toEqual([0, 40]);
});
