import { drawChart, phaseColour, type Frame } from "../charts/chart.ts";
import { formatValue, plural, scaleOf } from "../html/format.ts";
import type { Html } from "../html/html.ts";
import type { Panel, Point } from "./panels.ts";

export const chartSize = { width: 340, height: 176 } as const;
const frame: Frame = { ...chartSize, top: 10, right: 12, bottom: 34, left: 46, fontSize: 11 };

/** The smallest span of a value axis, in percentage points for shares. It keeps noise from filling the chart. */
const [minPoints, minSpan] = [10, 0.02];

/** Draws the chart of a panel; null if it has no values. */
export function panelChart(panel: Panel): Html | null {
  const { series, limits, unit, bounds } = panel;
  const scale = scaleOf(unit);
  const points = series.flatMap(({ points: all }) => all);
  if (points.every(({ value }) => value === null)) return null;
  const to = points.reduce((most, { updates }) => Math.max(most, updates), 1);
  return drawChart({
    frame,
    description: descriptionOf(panel),
    x: { to, ticks: Math.min(5, to), label: "updates" },
    y: {
      ticks: 4,
      text: (value) => value.toLocaleString("en-US"),
      label: null,
      minSpan: unit === "share" ? minPoints : minSpan,
      bounds: [bounds[0] * scale, bounds[1] * scale],
    },
    // The axis includes the thresholds, even if all values are far from them.
    levels: limits.map((limit) => ({
      value: limit * scale,
      from: 0,
      to,
      colour: "var(--worse)",
      dash: "5 4",
    })),
    series: series.map(({ name, colour, isDashed, points: all }) => ({
      colour: phaseColour(colour),
      lineWidth: 1.75,
      radius: 2.5,
      reach: 9,
      ...(isDashed && { dash: "2 3" }),
      points: all.map((point) => ({
        x: point.updates,
        y: point.value === null ? null : point.value * scale,
        title: pointTitle(name, point, unit),
        isHollow: isDashed,
      })),
    })),
  });
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
  const pairs: [number, number][] = [];
  for (const number of numbers) {
    const last = pairs.at(-1);
    if (last !== undefined && last[1] === number - 1) last[1] = number;
    else pairs.push([number, number]);
  }
  return pairs.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(", ");
}
