import type { RunRecord } from "@periodic-eval/core/snapshots";
import { basename, resolve } from "node:path";
import { htmlDocument } from "./document.ts";
import { plural } from "./format.ts";
import { html } from "./html.ts";
import { overview } from "./overview.ts";
import { phaseTables } from "./phase-table.ts";
import { problems } from "./problems.ts";
import { provenance } from "./provenance.ts";
import { receipts } from "./receipts.ts";
import { snapshotTable } from "./snapshot-table.ts";
import { subjectSection } from "./subject-section.ts";
import { subjectsOf } from "./tracks.ts";

/** One self-contained HTML file that makes no request: the curves, tables and receipts of a run. */
export function renderPage(run: RunRecord): string {
  const subjects = subjectsOf(run);
  const snapshots = run.phases.reduce((sum, phase) => sum + phase.snapshots.length, 0);
  return htmlDocument({
    title: basename(resolve(run.runDir)),
    main: html`${overview(run)}
    ${snapshots === 0 && html`<p class="notice">No snapshot was found in this run.</p>`}
    ${subjects.map((subject) => subjectSection(run, subject))} ${snapshots > 0 && phaseTables(run)}
    ${problems(run)} ${snapshots > 0 && [receipts(run), snapshotTable(run), provenance(run)]}`,
    source: html`Made by periodic-eval from ${plural(snapshots, "snapshot")} in
      <span class="code">${run.runDir}</span>.`,
  });
}
