import { frames, runChart, type ChartSize } from "../charts/run-chart.ts";
import type { CurveData, PointData, RunData } from "../page-data/run-data.ts";

/** A chart over run steps, and the curve that it shows. */
export interface Chart {
  readonly size: ChartSize;
  readonly svg: SVGSVGElement;
  readonly figure: HTMLElement;
  readonly curve: CurveData;
  /** Points with a value, in run order. */
  readonly points: readonly PointData[];
  /** Returns the place of a run step, in the units of the chart's view box. */
  x(runStep: number): number;
  /** Returns the run step at a horizontal place on the screen. */
  runStepAt(clientX: number): number;
  /** Returns the point that a circle shows; undefined for other elements. */
  pointOf(target: EventTarget | null): PointData | undefined;
}

/** The charts of a page and the data of their curves. */
export interface DrawnCharts {
  readonly data: RunData;
  readonly charts: readonly Chart[];
}

/** Draws the charts in the figures of the page that name a curve. Large ones are drawn for wide and for narrow screens. */
export function drawCharts(data: RunData, root: ParentNode = document): DrawnCharts {
  const byKey = new Map(data.curves.map((curve) => [curve.key, curve]));
  const charts = [...root.querySelectorAll<HTMLElement>("figure[data-curve]")].flatMap((figure) => {
    const curve = byKey.get(figure.dataset["curve"]!);
    if (!curve) return [];
    const sizes = figure.dataset["kind"] === "small" ? (["small"] as const) : (["wide", "narrow"] as const);
    return sizes.map((size) => {
      figure.insertAdjacentHTML(
        "beforeend",
        `<div class="${size}">${runChart(data, curve, size).markup}</div>`,
      );
      return chartOf(figure, curve, size, data);
    });
  });
  return { data, charts };
}

function chartOf(figure: HTMLElement, curve: CurveData, size: ChartSize, { steps }: RunData): Chart {
  const svg = figure.lastElementChild!.firstElementChild as SVGSVGElement;
  const { width, left, right } = frames[size];
  const span = width - left - right;
  return {
    size,
    svg,
    figure,
    curve,
    points: curve.points.filter(({ value }) => value !== null),
    x: (runStep) => left + (runStep / steps) * span,
    runStepAt(clientX) {
      const box = svg.getBoundingClientRect();
      return ((((clientX - box.left) / box.width) * width - left) / span) * steps;
    },
    pointOf(target) {
      const at = target instanceof SVGElement ? target.dataset["at"] : undefined;
      return at === undefined ? undefined : curve.points[Number(at)];
    },
  };
}

/** Returns the run step of a chart's points that is nearest to another one. */
export function nearestStep(points: readonly PointData[], runStep: number): number | null {
  let nearest: PointData | null = null;
  for (const point of points)
    if (nearest === null || Math.abs(point.runStep - runStep) < Math.abs(nearest.runStep - runStep))
      nearest = point;
  return nearest?.runStep ?? null;
}
