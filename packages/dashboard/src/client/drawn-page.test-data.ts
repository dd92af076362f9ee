import { parseHTML } from "linkedom";
import { drawCharts } from "./chart.ts";

/** Parses a page and draws its charts, as its script does. */
export function drawnPage(markup: string): Document {
  const { document } = parseHTML(markup);
  const data = document.getElementById("run-data")?.textContent;
  if (data) drawCharts(JSON.parse(data), document);
  return document;
}
