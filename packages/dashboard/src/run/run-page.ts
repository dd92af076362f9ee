import type { RunRecord } from "@periodic-eval/core/snapshots";
import { basename, resolve } from "node:path";
import { htmlDocument } from "../html/document.ts";
import { plural } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { findings, runHeader, writerNote } from "./overview.ts";
import { phaseTables } from "./phase-table.ts";
import { problems } from "./problems-section.ts";
import { provenance } from "./provenance-section.ts";
import { receipts } from "./receipts-section.ts";
import { allRows, type SectionOptions } from "../html/section-options.ts";
import { snapshotTable } from "./measurement-table.ts";
import { callbackSection } from "./callback-section.ts";
import { curvesByCallback } from "../charts/metric-curves.ts";

/** What a page shows of a run below its header. */
export function runSections(run: RunRecord, part: SectionOptions): Html {
  const isMeasured = run.phases.length > 0;
  return html`${findings(run, part)}
    ${!isMeasured && html`<p class="notice">No snapshot was found in this run.</p>`}
    ${curvesByCallback(run).map((callback) => callbackSection(run, callback, part))} ${isMeasured && phaseTables(run)}
    ${problems(run, part)} ${isMeasured && [receipts(run, part), snapshotTable(run, part), provenance(run)]}`;
}

/** One self-contained HTML file that makes no request: the curves, tables and receipts of a run. */
export function renderPage(run: RunRecord): string {
  const name = basename(resolve(run.runDir));
  const snapshots = run.phases.reduce((sum, phase) => sum + phase.snapshots.length, 0);
  return htmlDocument({
    title: name,
    main: html`${runHeader(run, name, writerNote(run))} ${runSections(run, allRows)}`,
    source: html`Made by periodic-eval from ${plural(snapshots, "snapshot")} in
      <span class="code">${run.runDir}</span>.`,
  });
}
