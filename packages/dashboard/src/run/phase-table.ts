import type { RunRecord } from "@periodic-eval/core/snapshots";
import { phaseAccent } from "../charts/draw-chart.ts";
import {
  formatDelta,
  formatInterval,
  formatP,
  formatSeconds,
  missingValueText,
  humanizeName,
} from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { formatChange, formatMeasurement } from "../charts/measurement-text.ts";
import { formatOverhead } from "./overhead.ts";
import { summarizePhases, type MetricSummary, type PhaseSummary } from "./phase-summary.ts";
import { table } from "../html/table.ts";
import { isGroupMetric } from "../charts/metric-curves.ts";
import { verdictTag } from "../html/verdict.ts";

/** Start against end of every phase, for every metric of every callback but those of groups; the primary one first. */
export function phaseTables(run: RunRecord): Html {
  return html`<section>
    <h2>Phase by phase</h2>
    <p class="sub">
      Start against end, on the same questions. A change “over paired items” is of those that both measurements
      observed, item by item, and so not end minus start. “No evidence” is not “no change”: the last column is
      the smallest change that such a measurement would see four times in five.
    </p>
    ${summarizePhases(run).map(phaseTable)}
  </section>`;
}

const columns = [
  "metric",
  "start",
  "end",
  "change",
  "95 % interval",
  "p",
  { words: "verdict" },
  "detectable",
];

function phaseTable({ phase, phaseIndex, metrics }: PhaseSummary): Html {
  const length = phase.maxSteps === null ? "" : `${phase.maxSteps} steps, `;
  const spent = `measuring took ${formatSeconds(phase.evaluationSeconds)}, overhead ${formatOverhead(phase)}`;
  return table(
    `Phase ${phase.name}`,
    columns,
    metrics.filter(({ metric }) => !isGroupMetric(metric)).map(metricRow),
    {
      caption: html`<span class="phase">${phase.name}</span> ${length}${spent}`,
      className: phaseAccent(phaseIndex),
    },
  );
}

function metricRow(summary: MetricSummary): Html {
  const { id, metric, unit, isPrimary, start, end, change, against } = summary;
  return html`<tr class="${isPrimary && "primary"}">
    <th scope="row">${humanizeName(id)}: ${humanizeName(metric)}</th>
    <td>${formatMeasurement(start, unit)}</td>
    <td>${formatMeasurement(end, unit)}</td>
    <td>${formatChange(summary)}</td>
    <td>${formatInterval(change?.ci95, unit)}</td>
    <td>${change ? formatP(change.p_value).replace(/^p (= )?/, "") : missingValueText}</td>
    <td class="words">
      ${verdictTag(change) ?? missingValueText}${change?.verdict && change.exploratory && html` <small>exploratory</small>`}
      ${against && html`<small>against ${against}</small>`}
    </td>
    <td>${change ? formatDelta(change.minimal_detectable_change, unit).replace("+", "±") : missingValueText}</td>
  </tr>`;
}
