import type { RunRecord } from "@periodic-eval/contracts";
import { dataBlock } from "../html/data-block.ts";
import { glossaryOf } from "../html/glossary.ts";
import { html } from "../html/html.ts";
import { allRows } from "../html/section-options.ts";
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
  const main = wholeRun(run, name, writerNote(run), { answers: null, scatters: [] }, allRows);
  return html`<main>${main} ${glossaryOf(main)}</main> ${dataBlock(["run-data", runData(run)])}`.markup;
}
