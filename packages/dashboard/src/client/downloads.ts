import { withLines } from "../charts/run-chart.ts";
import type { DrawnCharts } from "./chart.ts";
import { create, save } from "./dom.ts";
import type { CurveData, RunData } from "../page-data/run-data.ts";

/** Adds a menu to each figure that downloads its chart as SVG, PNG or CSV, and one to each heat map for CSV. */
export function startDownloads({ data, charts }: DrawnCharts): void {
  // The chart for wide screens is downloaded on every screen.
  for (const { figure, svg, curve } of charts.filter(({ size }) => size !== "narrow"))
    figure.append(
      menu({
        svg: () => svg,
        name: [curve.callback, curve.metric],
        title: curve.name,
        csv: () => csvOf([curve], data),
      }),
    );
  for (const map of document.querySelectorAll<HTMLElement>("[data-heat]")) {
    const keys = JSON.parse(map.dataset["curves"]!) as readonly string[];
    const curves = data.curves.filter(({ key }) => keys.includes(key));
    if (curves.length === 0) continue;
    const title = map.dataset["heat"]!;
    const name = [curves[0]!.callback, title] as const;
    map.append(menu({ svg: null, name, title, csv: () => csvOf(curves, data) }));
  }
}

interface Drawing {
  /** Null for a table. */
  readonly svg: (() => SVGSVGElement) | null;
  /** The callback, null for training metrics, and what the drawing shows. */
  readonly name: readonly [callback: string | null, what: string];
  readonly title: string;
  csv(): string | Promise<string>;
}

/** Returns a menu that downloads a drawing as SVG, PNG and CSV, or a table as CSV. */
export function menu({ svg, name: [callback, what], title, csv }: Drawing): HTMLElement {
  const of = callback === null ? title : `${title}, ${callback}`;
  const name = callback === null ? what : `${callback}_${what}`;
  const button = (kind: string, make: () => Promise<Blob>): HTMLElement => {
    const element = create("button", { type: "button", "aria-label": `Download ${of} as ${kind}` }, kind);
    element.addEventListener("click", () => {
      void make().then(
        (blob) => save(blob, `${name}.${kind.toLowerCase()}`),
        () => (element.textContent = `${kind} failed`),
      );
    });
    return element;
  };
  const images =
    svg === null
      ? []
      : [
          button("SVG", async () => new Blob([standaloneSvg(svg())], { type: "image/svg+xml" })),
          button("PNG", () => pngOf(standaloneSvg(svg()), svg().viewBox.baseVal)),
        ];
  return create(
    "details",
    { class: "download" },
    create("summary", { "aria-label": `Download ${of}` }, "Download"),
    ...images,
    button("CSV", async () => new Blob([await csv()], { type: "text/csv" })),
  );
}

/** Returns a chart as an SVG file with the colours that the page shows now. */
function standaloneSvg(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  for (const extra of copy.querySelectorAll(".cross-hair")) extra.remove();
  for (const name of copy.getAttributeNames())
    if (/^(data-|aria-value|aria-description|tabindex|role)/.test(name)) copy.removeAttribute(name);
  const { width, height } = svg.viewBox.baseVal;
  const page = getComputedStyle(svg);
  const named = [...copy.outerHTML.matchAll(/var\((--[\w-]+)\)/g)].map(([, name]) => name!);
  const names = new Set([...named, "--ink", "--muted", "--panel"]);
  const colours = [...names].map((name) => `${name}: ${page.getPropertyValue(name)};`).join(" ");
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = `svg { ${colours} --plot-background: var(--panel); background: var(--panel); color: var(--ink); font-family: sans-serif; overflow: visible; } text { white-space: pre; }`;
  copy.prepend(style);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  return new XMLSerializer().serializeToString(copy);
}

/** Pixels per unit of the view box. */
const pngScale = 2;

async function pngOf(svg: string, { width, height }: DOMRect): Promise<Blob> {
  const image = new Image(width * pngScale, height * pngScale);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = create("canvas", { width: String(width * pngScale), height: String(height * pngScale) });
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob === null ? reject(new Error("no image")) : resolve(blob)), "image/png"),
  );
}

/** Returns a row for each measurement of each curve. */
function csvOf(curves: readonly CurveData[], data: RunData): string {
  const { parts, partsAre } = withLines(data, curves[0]!);
  const rows = curves.flatMap(({ metric, callback, unit, points }) =>
    points.map(({ part, step, runStep, value, ci95, n, verdict }) => [
      textCell(parts[part] ?? ""),
      step,
      runStep,
      textCell(callback ?? "training"),
      textCell(metric),
      value,
      ci95?.[0] ?? null,
      ci95?.[1] ?? null,
      n,
      verdict,
      textCell(unit),
    ]),
  );
  const header = `${partsAre},step,run_step,callback,metric,value,ci95_low,ci95_high,n,verdict,unit`;
  return [header, ...rows.map((row) => row.map((cell) => cell ?? "").join(","))].join("\r\n") + "\r\n";
}

/** Quotes a string. A leading apostrophe keeps a spreadsheet from calculating strings that begin like a formula. */
export function textCell(text: string): string {
  const harmless = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
