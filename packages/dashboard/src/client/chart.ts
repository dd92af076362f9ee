import { formatInterval, formatValue } from "@periodic-eval/core/statistics";
import type { CurveData, PointData, RunData } from "../page-data/run-data.ts";

/** A chart over run steps, drawn by the server, and the curve that it shows. */
export interface Chart {
  readonly svg: SVGSVGElement;
  readonly figure: Element;
  readonly curve: CurveData;
  /** Points with a value, in run order. */
  readonly points: readonly PointData[];
  /** Returns the place of a run step, in the units of the chart's view box. */
  x(runStep: number): number;
  /** Returns the run step at a horizontal place on the screen. */
  runStepAt(clientX: number): number;
}

/** Returns the charts of the page whose curves are in its data. */
export function findCharts({ curves, steps }: RunData): readonly Chart[] {
  const byKey = new Map(curves.map((curve) => [curve.key, curve]));
  return [...document.querySelectorAll<SVGSVGElement>("svg[data-curve]")].flatMap((svg) => {
    const curve = byKey.get(svg.dataset["curve"]!);
    const figure = svg.closest("figure");
    if (!curve || !figure) return [];
    const [left, right] = [Number(svg.dataset["left"]), Number(svg.dataset["right"])];
    const { width } = svg.viewBox.baseVal;
    const span = width - left - right;
    const runStepAt = (clientX: number): number => {
      const box = svg.getBoundingClientRect();
      return ((((clientX - box.left) / box.width) * width - left) / span) * steps;
    };
    const points = curve.points.filter(({ value }) => value !== null);
    return [{ svg, figure, curve, points, x: (runStep) => left + (runStep / steps) * span, runStepAt }];
  });
}

/** Returns the run step of a chart's points that is nearest to another one. */
export function nearestStep(points: readonly PointData[], runStep: number): number | null {
  let nearest: PointData | null = null;
  for (const point of points)
    if (nearest === null || Math.abs(point.runStep - runStep) < Math.abs(nearest.runStep - runStep))
      nearest = point;
  return nearest?.runStep ?? null;
}

/** Training metrics range from learning rates to tokens per second, so they are shown with four significant digits. */
const valueText = (value: number | null, { callback, unit }: CurveData): string =>
  callback === null && value !== null
    ? [String(Number(value.toPrecision(4))), unit].join(" ").trim()
    : formatValue(value, unit);

/** Describes the points at a run step: two where one phase ends and the next begins, one of each run. */
export function valuesAt(
  { points, curve }: Pick<Chart, "points" | "curve">,
  runStep: number,
  { parts, partsAre }: RunData,
): string {
  return points
    .filter((point) => point.runStep === runStep)
    .map((point) => {
      const facts = [
        [valueText(point.value, curve), ...(point.ci95 ? [formatInterval(point.ci95, curve.unit)] : [])].join(
          " ",
        ),
        ...(point.n === null ? [] : [`n = ${point.n}`]),
        ...(point.verdict === null ? [] : [point.verdict]),
      ];
      const at = partsAre === "phase" ? " step" : ", run step";
      return `${parts[point.part] ?? ""}${at} ${point.step}: ${facts.join(", ")}`;
    })
    .join("; ");
}
