import type { RunRecord } from "@periodic-eval/core/snapshots";
import { curvesByCallback } from "../charts/metric-curves.ts";
import type { ScatterData } from "../client/run-data.ts";
import { html, type Html, type HtmlValue } from "../html/html.ts";
import type { SectionOptions } from "../html/section-options.ts";
import { callbackSection } from "./callback-section.ts";
import { snapshotTable } from "./measurement-table.ts";
import { findings } from "./overview.ts";
import { phaseTables } from "./phase-table.ts";
import { problems } from "./problems-section.ts";
import { provenance } from "./provenance-section.ts";
import { receipts } from "./receipts-section.ts";
import { trainingSection } from "./training-section.ts";

/**
 * Renders all sections of a run except its header.
 *
 * @param answers The sections of the answers, which follow the curves.
 */
export function runSections(
  run: RunRecord,
  options: SectionOptions,
  answers: HtmlValue = null,
  scatters: readonly ScatterData[] = [],
): Html {
  const isMeasured = run.phases.length > 0;
  return html`${findings(run, options)}
    ${!isMeasured && html`<p class="notice">This run has no snapshots yet.</p>`}
    ${curvesByCallback(run).map((callback) =>
      callbackSection(
        run,
        callback,
        options,
        scatters.find((one) => one.callback === callback.id),
      ),
    )}
    ${trainingSection(run)} ${answers} ${isMeasured && phaseTables(run)}
    ${problems(run, options)} ${isMeasured && [receipts(run, options), snapshotTable(run, options), provenance(run)]}`;
}
