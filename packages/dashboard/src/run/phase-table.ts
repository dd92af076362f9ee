import type { PhaseRecord, RunRecord } from "@periodic-eval/contracts";
import { graceText } from "@periodic-eval/core/console";
import { isOnlyEdges, isWithinGrace, undisturbed } from "@periodic-eval/store";
import { phaseAccent } from "../charts/chart.ts";
import { formatMeasurement, isGroupMetric, phaseText } from "../charts/metric-curves.ts";
import {
  formatDelta,
  formatInterval,
  formatP,
  formatSeconds,
  overPairs,
  plural,
  missingValueText,
  humanizeName,
  formatPercent,
} from "../html/format.ts";
import { term } from "../html/glossary.ts";
import { html, type Html } from "../html/html.ts";
import { table } from "../html/table.ts";
import { verdictTag, voidTag } from "../html/verdict.ts";
import { edgeHeadings, summarizePhases, type MetricSummary, type PhaseSummary } from "./phase-summary.ts";

/** Renders one table for each phase: every metric at the start and at the end, except metrics of single groups. */
export function phaseTables(run: RunRecord): Html {
  return html`<section id="phases">
    <h2>Start and end of each phase</h2>
    <p class="sub">
      Both measurements use the same questions. A change “over paired items” covers only the items that both
      measurements observed, so it differs from end minus start. “No evidence” does not mean “no change”: the last
      column is the smallest change that a measurement of this size detects with 80 % power. A primary metric is tested
      ${term("level", "at a level")} that it shares with the other measurements; the others are ${term("exploratory")}.
    </p>
    ${summarizePhases(run).map(phaseTable)}
  </section>`;
}

const columnsOf = (metrics: readonly MetricSummary[]) => [
  "metric",
  ...edgeHeadings(metrics),
  "change",
  { heading: term("95 % interval"), className: "" },
  { heading: term("p-value", "p"), className: "" },
  { heading: term("verdict") },
  { heading: term("detectable change", "detectable"), className: "" },
];

function phaseTable({ phase, phaseIndex, metrics }: PhaseSummary): Html {
  const hasLength = phase.maxSteps !== null || phase.state !== "finished";
  const length = hasLength ? `${phaseText(phase)}, ` : "";
  const shown = metrics.filter(({ metric }) => !isGroupMetric(metric));
  const cost = `measuring took ${formatSeconds(phase.evaluationSeconds)}, overhead ${formatOverhead(phase)}`;
  const constant = shown.filter((summary) => !summary.isPrimary && isConstant(phase, summary));
  const className = phaseAccent(phaseIndex);
  const whole = table(
    `Phase ${phase.name}`,
    columnsOf(shown),
    shown.filter((summary) => !constant.includes(summary)).map(metricRow),
    { caption: html`<span class="phase">${phase.name}</span> ${length}${cost}`, className },
  );
  if (constant.length === 0) return whole;
  return html`${whole}
    <details>
      <summary>The same in every measurement of ${phase.name} <span>${plural(constant.length, "metric")}</span></summary>
      ${table(`Metrics of ${phase.name} that did not change`, columnsOf(shown), constant.map(metricRow), { className })}
    </details>`;
}

/** Whether a metric has one value in all measurements of a phase. */
function isConstant({ snapshots }: PhaseRecord, { id, metric }: MetricSummary): boolean {
  const values = snapshots
    .filter((one) => one.id === id)
    .flatMap(({ metrics }) => metrics[metric]?.value ?? []);
  return values.length > 1 && values.every((value) => value === values[0]);
}

function metricRow(summary: MetricSummary): Html {
  const { id, metric, unit, isPrimary, start, end, isSingle, change, against } = summary;
  return html`<tr class="${isPrimary && "primary"}">
    <th scope="row">${humanizeName(id)}: ${humanizeName(metric)}</th>
    <td>${formatMeasurement(start, unit)}</td>
    <td>${isSingle ? missingValueText : formatMeasurement(end, unit)}</td>
    <td>${formatDelta(change?.delta, unit)}${change !== null && summary.isOverPairs && html` <small class="below">${overPairs(change)}</small>`}</td>
    <td>${formatInterval(change?.ci95, unit)}</td>
    <td>${change ? formatP(change.p_value).replace(/^p (= )?/, "") : missingValueText}</td>
    <td class="left">
      ${summary.voidReason === null ? (verdictTag(change) ?? missingValueText) : voidTag(summary.voidReason)}${change?.verdict && change.exploratory && html` <small>exploratory</small>`}
      ${against && html`<small>against ${against}</small>`}
    </td>
    <td>${change ? formatDelta(change.minimal_detectable_change, unit).replace("+", "±") : missingValueText}</td>
  </tr>`;
}

/**
 * Formats a phase's overhead: `18.4 %`; `142.8 %, within the grace` if the budget's grace allowed more than its ceiling; `142.8 %,
 * no ceiling set` if nothing limited it; `not applicable` if training ran in another process, which does not wait for measurements.
 */
function formatOverhead(phase: PhaseRecord): string {
  if (isElsewhere(phase)) return "not applicable";
  const limit = hasNoCeiling(phase)
    ? ", no ceiling set"
    : isWithinGrace(phase.snapshots)
      ? ", within the grace"
      : "";
  return `${formatPercent(phase.overheadPercent)}${limit}`;
}

/**
 * Formats what measuring cost in a phase: `5.07 s, within the grace of 60 s` if the budget's grace left everything whole, else
 * `5.07 s, overhead 18.4 %`. `5.07 s at start and end`, which have no limit, if nothing was measured between them.
 */
export function formatCost(phase: PhaseRecord): string {
  if (!isElsewhere(phase) && isOnlyEdges(phase.snapshots))
    return `${formatSeconds(phase.evaluationSeconds)} at start and end`;
  const isWithin = !isElsewhere(phase) && !hasNoCeiling(phase) && isWithinGrace(phase.snapshots);
  const share = isWithin ? graceText(phase.snapshots) : `overhead ${formatOverhead(phase)}`;
  return `${formatSeconds(phase.evaluationSeconds)}, ${share}`;
}

/** Whether a phase was trained in another process, so that its overhead is unknown. */
export const isElsewhere = ({ snapshots }: PhaseRecord): boolean =>
  undisturbed(snapshots)?.answer === "not applicable";

/** Whether the overhead governor was off during a phase. */
export function hasNoCeiling({ snapshots }: PhaseRecord): boolean {
  // A skipped or failed snapshot may say `off` because it ended before the governor decided.
  const measured = snapshots.filter(({ status }) => status !== "skipped" && status !== "failed");
  return measured.length > 0 && measured.every(({ timing }) => timing.governor === "off");
}
