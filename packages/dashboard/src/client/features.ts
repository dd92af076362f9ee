import { startAnswers } from "./answers/start-answers.ts";
import { startCrossHair } from "./cross-hair.ts";
import { startDownloads } from "./downloads.ts";
import { startScatters } from "./scatter.ts";

/** The features of a page. Each finds its own elements and data, and does nothing on a page that has none. */
const features: readonly (() => void)[] = [startCrossHair, startDownloads, startScatters, startAnswers];

/** Starts all features on the content of the page. */
export function startFeatures(): void {
  for (const start of features) attempt(start);
}

export function attempt(start: () => void): void {
  try {
    start();
  } catch (error) {
    // The other features, and the page itself, work without this one.
    console.warn(error);
  }
}
