import { parseHTML } from "linkedom";
import { expect, it } from "vitest";
import { drawChart, ticks } from "./chart.ts";

/** An interval at a step; null if it has none. */
type IntervalAtStep = readonly [runStep: number, interval: readonly [number, number] | null];

/** Returns the bands, bars and caps of a chart of 100 × 100 units without margins. */
function drawn(steps: readonly IntervalAtStep[]) {
  const { markup } = drawChart({
    frame: { width: 100, height: 100, top: 0, right: 0, bottom: 0, left: 0, fontSize: 10 },
    description: "a chart",
    x: { to: 100, ticks: 1, label: "" },
    y: { ticks: 1, text: String, label: null, minSpan: 100, bounds: [0, 100] },
    series: [
      {
        points: steps.map(([x, interval]) => ({ x, y: null, interval })),
        colour: "red",
        lineWidth: 1,
        radius: 1,
        bandOpacity: 0.1,
      },
    ],
  });
  const { document } = parseHTML(markup);
  const numbers = (line: Element) =>
    ["x1", "x2", "y1", "y2"].map((name) => Math.round(Number(line.getAttribute(name))));
  return {
    bands: document.querySelectorAll("path[fill-opacity]").length,
    lines: [...document.querySelectorAll("[stroke='red'] > line")].map(numbers),
  };
}

it("draws one band if every step has an interval", () => {
  const steps = [0, 50, 100].map((step): IntervalAtStep => [step, [20, 40]]);
  expect(drawn(steps)).toEqual({ bands: 1, lines: [] });
});

it("draws a single step as a bar from the lower to the upper end, with caps", () => {
  expect(drawn([[50, [0, 100]]])).toEqual({
    bands: 0,
    lines: [
      [50, 50, 100, 0],
      [47, 53, 100, 100],
      [47, 53, 0, 0],
    ],
  });
});

it("draws no band if a step has no interval, but one bar for each other step", () => {
  const { bands, lines } = drawn([
    [0, [0, 40]],
    [40, [0, 40]],
    [80, null],
  ]);
  expect(bands).toBe(0);
  expect(lines.filter(([x1, x2]) => x1 === x2).map(([x1]) => x1)).toEqual([0, 40]);
});

it.each([
  [0, 100, 5, [0, 20, 40, 60, 80, 100]],
  [0, 160, 9, [0, 20, 40, 60, 80, 100, 120, 140, 160]],
  [-0.32, 0.11, 4, [-0.3, -0.2, -0.1, 0, 0.1]],
  [2.673, 2.727, 3, [2.68, 2.7, 2.72]],
  [0, 3, 3, [0, 1, 2, 3]],
  [0, 12_345, 4, [0, 2000, 4000, 6000, 8000, 10_000, 12_000]],
])("places round ticks from %s to %s", (from, to, count, expected) => {
  expect(ticks(from, to, count)).toEqual(expected);
});
