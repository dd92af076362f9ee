import * as z from "zod";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { parseOptions } from "@periodic-eval/contracts/options";
import { writeFileAtomic, nodeFiles } from "@periodic-eval/store";
import { phaseColour } from "../charts/chart.ts";
import { html, trusted, type Html } from "../html/html.ts";
import { colours } from "../html/style.ts";
import { renderFeedback } from "./feedback-page.ts";
import { chartSize, missingValueNotes, panelChart } from "./panel-chart.ts";
import { panelGroups, type Panel, type Series } from "./panels.ts";
import { readFeedback, type FeedbackRun } from "./read-feedback.ts";

export interface WriteFeedbackOptions {
  /** Path of the page. Default: `<output>/index.html`. */
  readonly page?: string;
}

const schema = z.strictObject({
  page: z.string("a file path").optional(),
} satisfies Record<keyof WriteFeedbackOptions, z.ZodType>);

/** The data that was read and the files that were written. */
export interface WrittenFeedback {
  readonly run: FeedbackRun;
  /** Absolute path. */
  readonly page: string;
  /** Absolute paths. */
  readonly plots: readonly string[];
}

/**
 * Writes the page of training on feedback, and each chart as an SVG and a PNG file in `<output>/plots/`. All are derived from
 * the files of the run and can be deleted at any time.
 *
 * @throws PeriodicEvalError `config` for a wrong option, `store` for a missing or damaged file.
 */
export async function writeFeedback(
  output: string,
  options: WriteFeedbackOptions = {},
): Promise<WrittenFeedback> {
  const { page = join(output, "index.html") } = parseOptions("writeFeedback options", schema, options);
  const run = await readFeedback(output);
  const groups = panelGroups(run);
  const plots: string[] = [];
  await nodeFiles.makeFolder(join(output, "plots"));
  const draw = await pngDrawing();
  for (const panel of groups.flatMap(({ panels }) => panels)) {
    const path = resolve(output, "plots", panel.id);
    const svg = plotFile(panel);
    await writeFileAtomic(`${path}.svg`, svg);
    await writeFileAtomic(`${path}.png`, (file) => file.write(draw(svg)));
    plots.push(`${path}.svg`, `${path}.png`);
  }
  await writeFileAtomic(page, renderFeedback(run, groups));
  return { run, page: resolve(page), plots };
}

/** Pixels per SVG unit: sharp on high-resolution screens and in print. */
const scale = 2;

/** The build copies them into the package. The same path leads there from `src` and from `dist`. */
const fontFiles = ["Inter_400Regular.ttf", "Inter_600SemiBold.ttf"].map(
  (file) => new URL(`../../fonts/${file}`, import.meta.url),
);

type Draw = (svg: string) => Uint8Array;

let drawing: Promise<Draw> | undefined;

/**
 * Returns a function that renders an SVG file as PNG in light mode. It uses a bundled renderer and font, so that the result is
 * the same on every machine. The first call loads both.
 */
const pngDrawing = (): Promise<Draw> => (drawing ??= load());

async function load(): Promise<Draw> {
  const { resolve } = createRequire(import.meta.url);
  const [{ initWasm, Resvg }, engine, ...fontBuffers] = await Promise.all([
    import("@resvg/resvg-wasm"),
    readFile(resolve("@resvg/resvg-wasm/index_bg.wasm")),
    ...fontFiles.map(async (file) => new Uint8Array(await readFile(file))),
  ]);
  await initWasm(engine);
  return (svg) => {
    const font = { fontBuffers, defaultFontFamily: "Inter", sansSerifFamily: "Inter" };
    const picture = new Resvg(inLightMode(svg), { font, fitTo: { mode: "zoom", value: scale } });
    const rendered = picture.render();
    try {
      return rendered.asPng();
    } finally {
      rendered.free();
      picture.free();
    }
  };
}

const lightColours = new Map(
  [...colours.slice(0, colours.indexOf("@media")).matchAll(/(--[\w-]+): (#\w+)/g)].map(([, name, colour]) => [
    name!,
    colour!,
  ]),
);

/** Replaces CSS variables inside tags, because the renderer does not support them. Leaves text between tags unchanged. */
const inLightMode = (svg: string): string =>
  svg.replaceAll(/<[^<>"]*(?:"[^"]*"[^<>"]*)*>/g, (tag) =>
    tag.replaceAll(/var\((--[\w-]+)\)/g, (variable, name: string) => lightColours.get(name) ?? variable),
  );

const margin = 14;
/** Height of the title and the legend. */
const headHeight = 52;
const lineHeight = 15;
/** Approximate number of characters that fit in a line below the chart. */
const charactersPerLine = 62;
const lineOfText = new RegExp(`.{1,${charactersPerLine}}(?= |$)|.{${charactersPerLine}}`, "gu");

/** Renders a panel as a separate SVG file with title, legend and missing values, for light and dark mode. */
function plotFile(panel: Panel): string {
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
  const matches = text.replaceAll(/\s+/g, " ").match(lineOfText) ?? [];
  const lines = matches.map((line) => line.trim());
  return lines.length > 4 ? [...lines.slice(0, 3), `${lines[3]!.slice(0, charactersPerLine - 1)}…`] : lines;
}
