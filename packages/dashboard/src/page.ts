import type { RunRecord } from "@periodic-eval/core/snapshots";
import { basename, resolve } from "node:path";
import { plural } from "./format.ts";
import { html, trusted } from "./html.ts";
import { overview } from "./overview.ts";
import { phaseTables } from "./phase-table.ts";
import { problems } from "./problems.ts";
import { provenance } from "./provenance.ts";
import { receipts } from "./receipts.ts";
import { snapshotTable } from "./snapshot-table.ts";
import { style } from "./style.ts";
import { subjectSection } from "./subject-section.ts";
import { subjectsOf } from "./tracks.ts";

/** What the page may do: show itself. No script runs, nothing is fetched. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/** One self-contained HTML file that makes no request: the curves, tables and receipts of a run. */
export function renderPage(run: RunRecord): string {
  const subjects = subjectsOf(run);
  const snapshots = run.phases.reduce((sum, phase) => sum + phase.snapshots.length, 0);
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${policy}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${basename(resolve(run.runDir))} · periodic-eval</title>
        <style>
          ${trusted(style)}
        </style>
      </head>
      <body>
        <main>
          ${overview(run)}
          ${snapshots === 0 && html`<p class="notice">No snapshot was found in this run.</p>`}
          ${subjects.map((subject) => subjectSection(run, subject))} ${snapshots > 0 && phaseTables(run)}
          ${problems(run)} ${snapshots > 0 && [receipts(run), snapshotTable(run), provenance(run)]}
        </main>
        <footer>
          Made by periodic-eval from ${plural(snapshots, "snapshot")} in
          <span class="code">${run.runDir}</span>. This page makes no request and runs no script.
        </footer>
      </body>
    </html> `;
  return page.markup;
}
