import type { RunData } from "../page-data/run-data.ts";
import { startAnswers } from "./answers/start-answers.ts";
import { drawCharts } from "./chart.ts";
import { startCrossHair } from "./cross-hair.ts";
import { readDataBlock } from "./dom.ts";
import { startDownloads } from "./downloads.ts";

/** Starts all features on the content of the page. Each finds its own elements and data, and does nothing on a page that has none. */
export function startFeatures(): void {
  const data = readDataBlock<RunData>("run-data");
  if (data !== null) {
    const charts = drawCharts(data);
    startCrossHair(charts);
    startDownloads(charts);
  }
  startAnswers();
}
