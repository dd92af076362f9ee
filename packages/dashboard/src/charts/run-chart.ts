import { capitalized, formatInterval, formatNumber, formatValue, plural, scaleOf } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { verdictStyles } from "../html/verdict.ts";
import { evenly, type CurveData, type PointData, type RunData } from "../page-data/run-data.ts";
import { drawChart, phaseColour, type Frame } from "./chart.ts";

/** Each large chart is drawn for wide and for narrow screens, because scaling one chart would shrink its text. */
export const frames = {
  wide: { width: 1000, height: 380, top: 46, right: 24, bottom: 40, left: 56, fontSize: 12 },
  narrow: { width: 360, height: 300, top: 46, right: 10, bottom: 40, left: 40, fontSize: 12 },
  small: { width: 300, height: 146, top: 8, right: 8, bottom: 34, left: 40, fontSize: 11 },
} as const satisfies Record<string, Frame>;
export type ChartSize = keyof typeof frames;

/** Renders the place of a chart, where the page's script draws it with the values at the pointer and a download. */
export const chartPlace = (key: string, kind: "large" | "small", caption: Html | null = null): Html =>
  html`<figure class="panel" data-curve="${key}" data-kind="${kind}">${caption && html`<figcaption>${caption}</figcaption>`}</figure>`;

/** A metric with a small chart: its values, and the phase of each. */
export interface SmallCurve {
  readonly key: string;
  readonly name: Html | string;
  readonly about: string;
  readonly points: readonly { readonly phase: string | number; readonly value: number | null }[];
  readonly text: (value: number | null) => string;
}

/** Renders small charts, and below them the metrics with at most one value in each phase, whose charts would be dots. */
export function smallCharts(curves: readonly SmallCurve[]): Html {
  const isLine = ({ points }: SmallCurve) => new Set(points.map(({ phase }) => phase)).size < points.length;
  const charts = curves
    .filter(isLine)
    .map(({ key, name, about }) => chartPlace(key, "small", html`${name} <span>${about}</span>`));
  const listed = curves.filter((curve) => !isLine(curve));
  return html`${charts.length > 0 && html`<div class="multiples">${charts}</div>`} ${valueLine(listed)}`;
}

/** Names metrics in a line, with their different values. */
export const valueLine = (curves: readonly SmallCurve[], title = ""): Html | false =>
  curves.length > 0 &&
  html`<p class="key">${title} ${curves.map(({ name, points, text }, at) => html`${at > 0 && " · "}${name} <span class="unbroken">${[...new Set(points.map(({ value }) => text(value)))].join(", ")}</span>`)}</p>`;

/** Points of a line of a training metric. More would change no pixel. */
const maxPoints = 600;
/** Position of the first run whose colour is used a second time. */
const dashedFrom = 5;
const isDashed = (run: number): boolean => run >= dashedFrom;
const maxVerdicts = 24;

type Drawn = PointData & { readonly value: number; readonly at: number };

/** Returns the data of a page with the parts of one of its curves. */
export const withLines = (data: RunData, { lines }: CurveData): RunData =>
  lines === undefined ? data : { ...data, parts: lines, partsAre: "line" };

/** Renders the colour of a line, for a legend. */
export const lineSample = (part: number, isThick: boolean): Html =>
  html`<svg width="14" height="10" aria-hidden="true"><path d="M0 5H14" stroke="${isThick ? "var(--ink)" : phaseColour(part)}" stroke-width="3"${isDashed(part) && !isThick && html` stroke-dasharray="5 3"`} /></svg>`;

/** Draws a curve over run steps: a line for each phase of a run, or for each of several runs and their mean. */
export function runChart(page: RunData, curve: CurveData, size: ChartSize): Html {
  const data = withLines(page, curve);
  const { steps, parts, partsAre, phases } = data;
  const [isLarge, isTraining, isShare] = [size !== "small", curve.callback === null, curve.unit === "share"];
  const known = curve.points.flatMap((point, at): readonly Drawn[] =>
    point.value === null ? [] : [{ ...point, value: point.value, at }],
  );
  const byPart = parts.map((_, part) => known.filter((point) => point.part === part));
  const scale = scaleOf(curve.unit);
  // A phase without a gap has bars too, if another one needs them.
  const hasGaps = partsAre === "phase" && known.some(({ ci95 }) => ci95 === null);
  const largest = scale * known.reduce((most, { value }) => Math.max(most, Math.abs(value)), 0);
  const marks = marksOf(data);
  const marked = marks.map(({ word, x }) => ` ${capitalized(word)}: run step ${x}.`);
  return drawChart({
    frame: frames[size],
    description: [describe(data, curve), ...marked].join(""),
    x: { to: steps, ticks: size === "wide" ? 9 : 4, label: "run step →" },
    y: {
      ticks: isLarge ? 5 : 3,
      text: (value) => `${formatNumber(value)}${isShare ? " %" : ""}`,
      label: isLarge && !isShare && curve.unit !== "" ? `↑ ${curve.unit}` : null,
      // A constant is drawn on an axis of 5 % of its value, whose ticks have few digits.
      minSpan: Math.max(isLarge && isShare ? 24 : 0, 0.05 * largest || 1),
      bounds: isLarge && isShare ? [0, 100] : [-Infinity, Infinity],
    },
    bands: phases.map(({ name, about, from, to }, index) => ({
      from,
      to,
      name: !isLarge ? "" : size === "narrow" || about === null ? name : `${name}  ·  ${about}`,
      ...(partsAre !== "phase"
        ? { colour: "var(--muted)", fillOpacity: 0, lineOpacity: from === 0 ? 0 : 0.5 }
        : { colour: phaseColour(index), fillOpacity: 0.06, lineOpacity: isLarge ? 0.35 : 0 }),
    })),
    levels: (isLarge ? (curve.baselines ?? []) : []).flatMap((value, part) =>
      value === null
        ? []
        : [{ ...phases[part]!, value: value * scale, colour: phaseColour(part), dash: "2 4" }],
    ),
    marks,
    series: byPart.map((points, part) => ({
      ...styleOf(isTraining, isLarge, part, partsAre === "phase" ? null : part === parts.length - 1),
      ...(hasGaps && { bars: "instead" as const }),
      points: (isTraining ? evenly(points, maxPoints) : points).map((point) => ({
        x: point.runStep,
        y: point.value * scale,
        interval: point.ci95 && [point.ci95[0] * scale, point.ci95[1] * scale],
        title: [pointText(point, curve, data), point.change ?? []].flat().join("\n"),
        isHollow: point.status !== undefined,
        at: point.at,
      })),
    })),
    labels:
      isLarge && partsAre === "phase" ? byPart.flatMap((points) => verdictLabels(points, scale, size)) : [],
  });
}

/** Marks where a condition of `stop_when` was met, and the last clean step before it. */
const marksOf = ({ phases }: RunData) =>
  phases.flatMap(({ stop }) => {
    if (stop === undefined) return [];
    const met = { x: stop.met, word: "condition met", isLeft: false, colour: "var(--worse)" };
    const clean = { word: "last clean", isLeft: true, colour: "var(--better)" };
    return stop.clean === null ? [met] : [met, { ...clean, x: stop.clean }];
  });

/** Returns how the parts of a curve are drawn. Of several lines, each is thin; the last one, such as the mean over runs, is thick. */
function styleOf(isTraining: boolean, isLarge: boolean, part: number, isMean: boolean | null) {
  const colour = phaseColour(part);
  if (isMean === true)
    return { colour: "var(--ink)", lineWidth: 2.5, radius: 4, dotsOnlySingle: true, bandOpacity: 0.12 };
  if (isMean === false)
    return {
      colour,
      lineWidth: 1.75,
      radius: 3,
      dotsOnlySingle: true,
      ...(isDashed(part) && { dash: "5 3" }),
    };
  if (isTraining) return { colour, lineWidth: 1.5, radius: 2.5, dotsOnlySingle: true };
  return isLarge
    ? { colour, lineWidth: 2.25, radius: 4.5, reach: 14, bandOpacity: 0.13, bars: "too" as const }
    : { colour, lineWidth: 1.75, radius: 2.5, reach: 10, bandOpacity: 0.15 };
}

/** Labels points with their verdict: every verdict except `no evidence`, and the last one of each phase. Narrow charts show only glyphs. */
function verdictLabels(points: readonly Drawn[], scale: number, size: ChartSize) {
  const labels = points.flatMap(({ runStep, value, ci95, verdict }, at) => {
    // Right-aligns the last verdict of a phase, to keep it out of the next phase and of the margin.
    const isLast = at === points.length - 1;
    if (verdict === null || (verdict === "no evidence" && !isLast)) return [];
    const { glyph, colour } = verdictStyles[verdict];
    const isEnd = isLast && size === "wide";
    const text = size === "narrow" ? glyph : `${glyph} ${verdict}`;
    return [{ x: runStep, y: (ci95?.[1] ?? value) * scale, text, colour, isEnd }];
  });
  return evenly(labels, maxVerdicts);
}

/** Describes a curve for screen readers: its first and last value and the verdict in each part. */
function describe({ parts, partsAre }: RunData, { name, unit, callback, points }: CurveData): string {
  const what = callback === null ? name : `${name} with 95 % intervals`;
  if (partsAre === "run")
    return `${name}: ${plural(parts.length - 1, "run")} over run steps, and their mean.`;
  const sentences = parts.flatMap((part, index) => {
    const seen = points.filter((point) => point.part === index && point.value !== null);
    const [first, last] = [seen.at(0), seen.at(-1)];
    if (!first || !last) return [];
    const shown = (point: PointData) => point.measured ?? formatValue(point.value, unit);
    const value = shown(last);
    if (first === last) return [`in ${part} ${value} at step ${last.step}`];
    const verdict = last.verdict === null ? "" : `, ${last.verdict}`;
    return [`in ${part} from ${shown(first)} to ${value}${verdict}`];
  });
  return `${what}: ${sentences.join("; ")}.`;
}

/** Describes a point: `em step 60: 63.0 % [58.0, 68.0], n = 100, worse`. */
export function pointText(
  { part, step, value, ci95, n, status, verdict, ...point }: PointData,
  curve: CurveData,
  data: RunData,
): string {
  const { callback, unit } = curve;
  const { parts, partsAre } = withLines(data, curve);
  // Training metrics range from learning rates to tokens per second, so they are shown with four significant digits.
  const isTraining = callback === null && value !== null;
  const number = isTraining ? `${formatNumber(value)} ${unit}`.trim() : formatValue(value, unit);
  const shown = point.measured ?? number;
  const measured = ci95 === null ? shown : `${shown} ${formatInterval(ci95, unit)}`;
  const facts = [measured, n === null ? null : `n = ${n}`, status, verdict].filter((fact) => fact != null);
  return `${parts[part] ?? ""}${partsAre === "phase" ? " step" : ", run step"} ${step}: ${facts.join(", ")}`;
}
