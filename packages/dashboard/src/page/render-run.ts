import type { RunRecord } from "@periodic-eval/contracts";
import { startFeatures } from "../client/features.ts";
import { replaceContent } from "../client/live.ts";
import { glossaryOf } from "../html/glossary.ts";
import { dataBlock, html } from "../html/html.ts";
import { writerNote } from "../run/overview.ts";
import { runData } from "../run/run-data.ts";
import { wholeRun } from "../run/run-sections.ts";

/**
 * Renders a run for a page that shows it with `showRun`: its `<main>`, as in the page of a run without its answers, and the data of
 * its charts. Runs in workers too.
 *
 * @param name The heading.
 */
export function renderRun(run: RunRecord, name: string): string {
  const main = wholeRun(run, name, writerNote(run), null);
  return html`<main>${main} ${glossaryOf(main)}</main> ${dataBlock(["run-data", runData(run)])}`.markup;
}

/**
 * Shows a run that `renderRun` rendered in the `<main>` of this page, and makes its charts respond to pointer and keys. Called again
 * with the run's later state, it keeps the focus and what the reader opened.
 */
export function showRun(markup: string): void {
  replaceContent(new DOMParser().parseFromString(markup, "text/html"), startFeatures);
}
