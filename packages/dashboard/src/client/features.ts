import { startAnswers } from "./answers/start-answers.ts";
import { startCrossHair } from "./cross-hair.ts";
import { startDownloads } from "./downloads.ts";

/** Starts all features on the content of the page. Each finds its own elements and data, and does nothing on a page that has none. */
export function startFeatures(): void {
  startCrossHair();
  startDownloads();
  startAnswers();
}
