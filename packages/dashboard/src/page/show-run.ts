import { startFeatures } from "../client/features.ts";
import { replaceContent } from "../client/live.ts";

/**
 * Shows a run that `renderRun` rendered in the `<main>` of this page, and makes its charts respond to pointer and keys. Called again
 * with the run's later state, it keeps the focus and what the reader opened.
 */
export function showRun(markup: string): void {
  replaceContent(new DOMParser().parseFromString(markup, "text/html"), startFeatures);
}
