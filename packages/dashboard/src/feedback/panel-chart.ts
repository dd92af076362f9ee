import * as Plot from "@observablehq/plot";
import { chartAxes, drawChart, phaseColour, valueDomain } from "../charts/draw-chart.ts";
import { evenly } from "../page-data/run-data.ts";
import { formatValue, plural, scaleOf } from "../html/format.ts";
import type { Html } from "../html/html.ts";
import type { Panel, Point, Series } from "./panels.ts";

export const chartSize = { width: 340, height: 176 } as const;

/** The smallest span of a value axis, in percentage points for shares. It keeps noise from filling the chart. */
const [minPoints, minSpan] = [10, 0.02];

/** Draws the chart of a panel; null if it has no values. */
export function panelChart(panel: Panel): Html | null {
  const { series, limits, unit, bounds } = panel;
  const scale = scaleOf(unit);
  const points = series.flatMap(({ points: all }) => all);
  const values = points.flatMap(({ value }) => (value === null ? [] : [value]));
  if (values.length === 0) return null;
  const [low, high] = bounds;
  // Always include the thresholds, even if all values are far from them.
  const y = valueDomain(
    [...values, ...limits].map((value) => value * scale),
    { minSpan: unit === "share" ? minPoints : minSpan, bounds: [low * scale, high * scale] },
  );
  const maxUpdates = Math.max(1, ...points.map(({ updates }) => updates));
  return drawChart(
    {
      ...chartSize,
      marginTop: 10,
      marginRight: 12,
      marginBottom: 34,
      marginLeft: 46,
      x: { domain: [0, maxUpdates], label: null },
      y: { domain: y, label: null },
      marks: [
        ...chartAxes({
          fontSize: 11,
          x: {
            ticks: Math.min(5, maxUpdates),
            tickFormat: "d",
            tickPadding: 7,
            label: "updates",
            labelAnchor: "center",
            labelArrow: "none",
          },
          y: { ticks: 4, label: null },
        }),
        Plot.ruleY(
          limits.map((limit) => limit * scale),
          { stroke: "var(--worse)", strokeWidth: 1.25, strokeDasharray: "5 4" },
        ),
        ...series.map((one) => seriesMarks(one, panel)),
      ],
    },
    { description: descriptionOf(panel) },
  );
}

function seriesMarks({ name, colour, isDashed, points }: Series, { unit }: Panel): Plot.Markish[] {
  const scale = scaleOf(unit);
  const stroke = phaseColour(colour);
  const measured = evenly(points.filter(({ value }) => value !== null));
  // Keep unknown values as null: they interrupt the line.
  const place = { x: "updates", y: ({ value }: Point) => (value === null ? null : value * scale) };
  return [
    Plot.lineY(points, {
      ...place,
      stroke,
      strokeWidth: 1.75,
      ...(isDashed && { strokeDasharray: "2 3" }),
    }),
    Plot.dot(measured, { ...place, r: 2.5, stroke, fill: isDashed ? "var(--panel)" : stroke }),
    Plot.dot(measured, {
      ...place,
      r: 9,
      fill: "transparent",
      title: (point: Point) => pointTitle(name, point, unit),
    }),
  ];
}

function pointTitle(name: string, point: Point, unit: string): string {
  const when = point.updates === 0 ? "before any update" : `after ${plural(point.updates, "update")}`;
  const over = point.value !== null && point.n !== undefined ? ` (n = ${point.n})` : "";
  return `${name}, ${when}: ${formatValue(point.value, unit)}${over}`;
}

/** Describes a panel for screen readers: the first and last value of each line. */
function descriptionOf({ title, unit, series }: Panel): string {
  const parts = series.map(({ name, points }) => {
    const measured = points.filter(({ value }) => value !== null);
    const [first, last] = [measured[0], measured.at(-1)];
    return first === undefined
      ? `${name} not measured`
      : `${name} from ${formatValue(first.value, unit)} to ${formatValue(last!.value, unit)}`;
  });
  return `${title} by updates: ${parts.join("; ")}.`;
}

/** Describes the missing values of a panel, in one line for each series and reason. */
export function missingValueNotes({ series }: Panel): readonly string[] {
  return series.flatMap(({ name, points }) => {
    const missing = points.flatMap((point) => (point.value === null ? [point] : []));
    const reasons = [...new Set(missing.map(({ reason }) => reason))];
    return reasons.map((reason) => {
      const at = missing.filter((point) => point.reason === reason).map(({ updates }) => updates);
      const when = at.length === points.length ? "" : ` after ${ranges(at)} updates`;
      return `${name}: not measured${when}: ${reason}`;
    });
  });
}

/** Formats `[1, 2, 3, 7]` as `1–3, 7`. */
function ranges(numbers: readonly number[]): string {
  const found: [number, number][] = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last !== undefined && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(", ");
}
