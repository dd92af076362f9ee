import type { RunRecord } from "@periodic-eval/core/snapshots";
import { basename, resolve } from "node:path";
import { htmlDocument } from "./document.ts";
import { plural } from "./format.ts";
import { html, type Html } from "./html.ts";
import { findings, runHeader, writerNote } from "./overview.ts";
import { phaseTables } from "./phase-table.ts";
import { problems } from "./problems.ts";
import { provenance } from "./provenance.ts";
import { receipts } from "./receipts.ts";
import { wholeRun, type ShownPart } from "./shown-part.ts";
import { snapshotTable } from "./snapshot-table.ts";
import { subjectSection } from "./subject-section.ts";
import { subjectsOf } from "./tracks.ts";

/** What a page shows of a run below its header. */
export function runSections(run: RunRecord, part: ShownPart): Html {
  const isMeasured = run.phases.length > 0;
  return html`${findings(run, part)}
    ${!isMeasured && html`<p class="notice">No snapshot was found in this run.</p>`}
    ${subjectsOf(run).map((subject) => subjectSection(run, subject, part))} ${isMeasured && phaseTables(run)}
    ${problems(run, part)} ${isMeasured && [receipts(run, part), snapshotTable(run, part), provenance(run)]}`;
}

/** One self-contained HTML file that makes no request: the curves, tables and receipts of a run. */
export function renderPage(run: RunRecord): string {
  const name = basename(resolve(run.runDir));
  const snapshots = run.phases.reduce((sum, phase) => sum + phase.snapshots.length, 0);
  return htmlDocument({
    title: name,
    main: html`${runHeader(run, name, writerNote(run))} ${runSections(run, wholeRun)}`,
    source: html`Made by periodic-eval from ${plural(snapshots, "snapshot")} in
      <span class="code">${run.runDir}</span>.`,
  });
}
