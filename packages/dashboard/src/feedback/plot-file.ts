import { phaseColour } from "../charts/draw-chart.ts";
import { html, trusted, type Html } from "../html/html.ts";
import { colours } from "../html/style.ts";
import { chartSize, missingValueNotes, panelChart } from "./panel-chart.ts";
import type { Panel, Series } from "./panels.ts";

const margin = 14;
/** Height of the title and the legend. */
const headHeight = 52;
const lineHeight = 15;
/** Approximate number of characters that fit in a line below the chart. */
const charactersPerLine = 62;

/** Renders a panel as a separate SVG file with title, legend and missing values, for light and dark mode. */
export function plotFile(panel: Panel): string {
  const chart = panelChart(panel);
  const notes = missingValueNotes(panel).flatMap((note) => wrapped(note));
  const chartHeight = chart === null ? 0 : chartSize.height;
  const width = chartSize.width + 2 * margin;
  const height = headHeight + chartHeight + notes.length * lineHeight + margin;
  const notesAt = headHeight + chartHeight + lineHeight - 4;
  const unit = panel.unit === "" ? "" : `, ${panel.unit === "share" ? "%" : panel.unit}`;
  const drawing = html`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="11.5">
<style>${trusted(colours)}</style>
<rect width="100%" height="100%" style="fill: var(--panel)" />
<text x="${margin}" y="22" font-size="14" font-weight="600" style="fill: var(--ink)">${panel.title}${unit}</text>
<text x="${margin}" y="41" style="fill: var(--muted)">${panel.series.map(seriesName)}</text>
${chart !== null && html`<svg x="${margin}" y="${headHeight}" width="${chartSize.width}" height="${chartSize.height}">${chart}</svg>`}
${notes.map((note, at) => html`<text x="${margin}" y="${notesAt + at * lineHeight}" style="fill: var(--muted)">${note}</text>`)}
</svg>
`;
  return withoutControls(drawing);
}

const seriesName = ({ name, colour, isDashed }: Series, at: number): Html =>
  html`<tspan dx="${at === 0 ? 0 : 12}" style="fill: ${phaseColour(colour)}">${isDashed ? "○ " : "● "}</tspan>${name}`;

/** Replaces control characters: XML cannot represent most of them, even escaped. */
const withoutControls = ({ markup }: Html): string =>
  // oxlint-disable-next-line no-control-regex
  markup.replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "�");

/** Wraps a string at spaces. A string of more than four lines ends in an ellipsis. */
function wrapped(text: string): readonly string[] {
  const maxLines = 4;
  const lines: string[] = [];
  let rest = [...text.replaceAll(/\s+/g, " ")];
  while (rest.length > 0 && lines.length < maxLines) {
    const space = rest.length <= charactersPerLine ? -1 : rest.lastIndexOf(" ", charactersPerLine);
    const end = rest.length <= charactersPerLine ? rest.length : space > 0 ? space : charactersPerLine;
    lines.push(rest.slice(0, end).join("").trim());
    rest = rest.slice(end);
  }
  return rest.length === 0
    ? lines
    : [...lines.slice(0, -1), `${lines.at(-1)!.slice(0, charactersPerLine - 1)}…`];
}
