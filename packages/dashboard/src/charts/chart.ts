import { html, type Html } from "../html/html.ts";
import { evenly } from "../page-data/run-data.ts";

/** Each phase has one colour in charts and tables. The page's style defines it for light and dark mode. */
const phaseColours = 5;
const phaseNumber = (phaseIndex: number): number => (phaseIndex % phaseColours) + 1;
export const phaseColour = (phaseIndex: number): string => `var(--phase-${phaseNumber(phaseIndex)})`;

/** Returns a CSS class that sets the phase's colour: the pages' policy blocks `style` attributes. */
export const phaseAccent = (phaseIndex: number): string => `accent-${phaseNumber(phaseIndex)}`;

/** A chart as data, in the units of its axes. */
export interface ChartData {
  readonly frame: Frame;
  /** One sentence for screen readers. */
  readonly description: string;
  readonly x: { readonly to: number; readonly ticks: number; readonly label: string };
  readonly y: {
    readonly ticks: number;
    readonly text: (value: number) => string;
    /** Name of the unit above the axis; null for none. */
    readonly label: string | null;
    /** Smallest span of the axis, and the limits of its values. */
    readonly minSpan: number;
    readonly bounds: readonly [number, number];
  };
  readonly bands?: readonly ChartBand[];
  readonly levels?: readonly ChartLevel[];
  readonly marks?: readonly ChartMark[];
  readonly series: readonly ChartSeries[];
  readonly labels?: readonly ChartLabel[];
}

/** Size, margins and font size, in units of the view box. */
export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  readonly left: number;
  readonly fontSize: number;
}

/** A part of the x axis, with a line at its beginning and a name above it. */
interface ChartBand {
  /** Default: 0. */
  readonly from?: number;
  readonly to: number;
  /** The band covers the values above this one. Default: all. */
  readonly above?: number;
  readonly colour: string;
  readonly fillOpacity: number;
  /** Default: 0. */
  readonly lineOpacity?: number;
  readonly name: string;
}

/** A dashed horizontal line. */
interface ChartLevel {
  readonly value: number;
  readonly from: number;
  readonly to: number;
  readonly colour: string;
  readonly dash: string;
}

/** A vertical line with a word beside its upper end: above the plot if it has room there, else inside it. */
interface ChartMark {
  readonly x: number;
  readonly word: string;
  /** The preferred side of the word. */
  readonly isLeft: boolean;
  readonly colour: string;
}

/** Points that a line joins. */
export interface ChartSeries {
  readonly points: readonly ChartPoint[];
  readonly colour: string;
  /** Absent: no line joins the points, which may cover each other. */
  readonly lineWidth?: number;
  readonly dash?: string;
  /** Radius of the points; of a single point if `dotsOnlySingle`, because a line of one point is invisible. */
  readonly radius: number;
  readonly dotsOnlySingle?: boolean;
  /** Radius of the transparent circles with the titles: larger than the points, for a pointer or a finger. */
  readonly reach?: number;
  /** Opacity of the band of the intervals; no intervals without it. */
  readonly bandOpacity?: number;
  /** Bars with caps instead of the band, or in addition to it. */
  readonly bars?: "instead" | "too";
}

export interface ChartPoint {
  readonly x: number;
  /** Null interrupts the line. */
  readonly y: number | null;
  readonly interval?: readonly [low: number, high: number] | null;
  readonly title?: string;
  readonly isHollow?: boolean;
  /** Names the point in `data-at` of its circle. */
  readonly at?: number;
}

interface ChartLabel {
  readonly x: number;
  readonly y: number;
  readonly text: string;
  readonly colour: string;
  /** Whether the text ends at `x`. Otherwise its middle is there. */
  readonly isEnd: boolean;
}

/**
 * Returns the limits of a value axis: all values with a margin, at least `minSpan` wide, within `bounds`. The axis need not
 * start at zero, because position, not length, shows the value.
 */
function valueDomain(values: readonly number[], { minSpan, bounds: [min, max] }: ChartData["y"]) {
  const low = values.reduce((least, value) => Math.min(least, value), Infinity);
  const high = values.reduce((most, value) => Math.max(most, value), -Infinity);
  if (low > high) return [0, 1] as const;
  const span = Math.max(minSpan, (high - low) * 1.16);
  const start = Math.min(Math.max(min, (low + high - span) / 2), Math.max(min, max - span));
  return [start, Math.min(max, start + span)] as const;
}

/** Returns about `count` round values: multiples of 1, 2 or 5 times a power of ten. */
export function ticks(from: number, to: number, count: number): readonly number[] {
  const rough = (to - from) / count;
  const power = Math.floor(Math.log10(rough));
  const ratio = rough / 10 ** power;
  const factor = ratio >= Math.sqrt(50) ? 10 : ratio >= Math.sqrt(10) ? 5 : ratio >= Math.SQRT2 ? 2 : 1;
  // A division by an integer has no rounding error that a reader would see.
  const [times, by] = power < 0 ? [1, 10 ** -power / factor] : [factor * 10 ** power, 1];
  const [first, last] = [Math.ceil((from / times) * by), Math.floor((to / times) * by)];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => ((first + at) * times) / by);
}

/** Rounds to hundredths of a unit. */
const short = (value: number): number => Math.round(100 * value) / 100;

const lineOf = (x1: number, y1: number, x2: number, y2: number): Html =>
  html`<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" />`;

/** Keeps a text legible on lines. */
const outlined = html`paint-order="stroke" stroke="var(--panel)" stroke-width="3" stroke-linejoin="round"`;

/** Half of the width of a bar's cap. */
const capWidth = 3;

/** Draws a chart as SVG, with or without a browser. The page's style has the colours. */
export function drawChart({
  frame,
  description,
  x,
  y,
  bands = [],
  levels = [],
  marks = [],
  series,
  labels = [],
}: ChartData): Html {
  const { width, height, top, right, bottom, left, fontSize } = frame;
  const [end, floor] = [width - right, height - bottom];
  const shown = series.flatMap(({ points, bandOpacity }) =>
    points.flatMap((point) =>
      [point.y ?? [], bandOpacity === undefined ? [] : (point.interval ?? [])].flat(),
    ),
  );
  const [low, high] = valueDomain([...shown, ...levels.map(({ value }) => value)], y);
  const xOf = (value: number): number => short(left + (value / x.to) * (end - left));
  const yOf = (value: number): number => short(floor - ((value - low) / (high - low)) * (floor - top));
  const ticksOfY = ticks(low, high, y.ticks);
  return html`<svg class="chart" role="img" aria-label="${description}" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" text-anchor="middle" font-size="${fontSize}" font-family="system-ui, sans-serif" fill="currentColor">${bands.map(
    ({ from = 0, to, above = low, colour, fillOpacity, lineOpacity = 0, name }) =>
      html`<rect x="${xOf(from)}" y="${top}" width="${short(xOf(to) - xOf(from))}" height="${short(yOf(above) - top)}" fill="${colour}" fill-opacity="${fillOpacity}" /><g stroke="${colour}" stroke-opacity="${lineOpacity}">${lineOf(xOf(from), top, xOf(from), floor)}</g>${name !== "" && html`<text x="${xOf(from) + 1}" y="22" fill="${colour}" text-anchor="start" font-size="13" font-weight="600">${name}</text>`}`,
  )}<g stroke="var(--line)">${ticksOfY.map((value) => lineOf(left, yOf(value), end, yOf(value)))}</g><g fill="var(--muted)" font-variant="tabular-nums"><g text-anchor="end">${ticksOfY.map((value) => html`<text x="${left - 9}" y="${short(yOf(value) + 0.32 * fontSize)}">${y.text(value).replace("-", "−")}</text>`)}</g>${ticks(0, x.to, x.ticks).map((value) => html`<text x="${xOf(value)}" y="${short(floor + 6 + fontSize)}">${value.toLocaleString("en-US")}</text>`)}<text x="${width - 3}" y="${height - 3}" text-anchor="end">${x.label}</text>${y.label !== null && html`<text x="3" y="${top - 12}" text-anchor="start">${y.label}</text>`}</g>${levels.map(
    ({ value, from, to, colour, dash }) =>
      html`<g stroke="${colour}" stroke-dasharray="${dash}">${lineOf(xOf(from), yOf(value), xOf(to), yOf(value))}</g>`,
  )}${series.map((curve) => seriesMarks(curve, xOf, yOf))}${marks.map((mark) => markOf(mark, frame, xOf))}<g font-size="12" font-weight="600" ${outlined}>${labels.map(
    (label) =>
      html`<text x="${xOf(label.x) + (label.isEnd ? 5 : 0)}" y="${yOf(label.y) - 7}" fill="${label.colour}"${label.isEnd && html` text-anchor="end"`}>${label.text}</text>`,
  )}</g></svg>`;
}

type Scale = (value: number) => number;

function seriesMarks(series: ChartSeries, xOf: Scale, yOf: Scale): Html {
  const { points, colour, lineWidth, dash, radius, reach, dotsOnlySingle = false } = series;
  const known = points.flatMap((point) => (point.y === null ? [] : [{ ...point, y: point.y }]));
  const isScatter = lineWidth === undefined;
  const dots = isScatter ? known : evenly(dotsOnlySingle && known.length > 1 ? [] : known);
  const parts = points.map((point, at) => {
    if (point.y === null) return "";
    return `${points[at - 1]?.y == null ? "M" : "L"}${xOf(point.x)},${yOf(point.y)}`;
  });
  return html`${intervals(series, xOf, yOf)}${!isScatter && html`<path d="${parts.join("")}" fill="none" stroke="${colour}" stroke-width="${lineWidth}" stroke-linejoin="round" stroke-linecap="round"${dash !== undefined && html` stroke-dasharray="${dash}"`} />`}<g fill="${colour}"${isScatter ? html` fill-opacity="0.45"` : html` stroke="${colour}" stroke-width="${short(lineWidth - 0.25)}"`}>${dots.map(
    ({ x, y, isHollow }) =>
      html`<circle cx="${xOf(x)}" cy="${yOf(y)}" r="${radius}"${isHollow === true && html` fill="var(--panel)"`} />`,
  )}</g>${
    reach !== undefined &&
    html`<g fill="transparent">${dots.map(
      ({ x, y, title, at }) =>
        html`<circle cx="${xOf(x)}" cy="${yOf(y)}" r="${reach}"${at !== undefined && html` data-at="${at}"`}><title>${title}</title></circle>`,
    )}</g>`
  }`;
}

/** Units that the word of a mark needs. */
const wordWidth = 85;

function markOf({ x, word, isLeft, colour }: ChartMark, frame: Frame, xOf: Scale): Html {
  const { width, height, top, right, bottom, left, fontSize } = frame;
  const at = xOf(x);
  const hasRoom = (isLeft ? at - left : width - right - at) > wordWidth;
  const y = hasRoom && top > 2 * fontSize ? top - 5 : top + (isLeft ? 2.4 : 1.2) * fontSize;
  const isEnd = isLeft === hasRoom;
  return html`<g stroke="${colour}" stroke-dasharray="5 3">${lineOf(at, top, at, height - bottom)}</g><text x="${short(at + (isEnd ? -5 : 5))}" y="${short(y)}" fill="${colour}" text-anchor="${isEnd ? "end" : "start"}" font-weight="600" ${outlined}>${word}</text>`;
}

/**
 * Draws intervals as a band over the points, or a bar with caps per point if there is one point or if a point has no interval: a band
 * would be invisible, or would have a shape that no values have.
 */
function intervals({ points, colour, bandOpacity, bars }: ChartSeries, xOf: Scale, yOf: Scale): Html | false {
  if (bandOpacity === undefined) return false;
  const bounded = points.flatMap(({ x, interval }) =>
    interval == null ? [] : [{ x: xOf(x), low: yOf(interval[0]), high: yOf(interval[1]) }],
  );
  const isBand = bars !== "instead" && points.length > 1 && bounded.length === points.length;
  const edge = (side: "low" | "high") => bounded.map((point) => `${point.x},${point[side]}`);
  const band = [...edge("high"), ...edge("low").toReversed()].join("L");
  return html`${isBand && html`<path d="M${band}Z" fill="${colour}" fill-opacity="${bandOpacity}" />`}${
    (!isBand || bars === "too") &&
    html`<g stroke="${colour}" stroke-opacity="0.5" stroke-width="1.25">${evenly(bounded).map(
      ({ x, low, high }) =>
        html`${lineOf(x, low, x, high)}${!isBand && [low, high].map((y) => lineOf(x - capWidth, y, x + capWidth, y))}`,
    )}</g>`
  }`;
}
