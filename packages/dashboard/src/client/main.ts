import { startAnswers } from "./answers/start-answers.ts";
import { startCrossHair } from "./cross-hair.ts";
import { startLive } from "./live.ts";
import { startDownloads } from "./downloads.ts";
import { startPrinting } from "./print.ts";
import { startScatters } from "./scatter.ts";

/** The features of a page. Each finds its own elements and data, and does nothing on a page that has none. */
const features: readonly (() => void)[] = [
  startCrossHair,
  startDownloads,
  startScatters,
  startAnswers,
  startPrinting,
];

function startAll(): void {
  for (const start of features) attempt(start);
}

function attempt(start: () => void): void {
  try {
    start();
  } catch (error) {
    // The other features, and the page itself, work without this one.
    console.warn(error);
  }
}

startAll();
attempt(() => startLive(startAll));
