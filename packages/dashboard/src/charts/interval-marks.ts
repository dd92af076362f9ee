import * as Plot from "@observablehq/plot";
import { evenly } from "../page-data/evenly.ts";

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
