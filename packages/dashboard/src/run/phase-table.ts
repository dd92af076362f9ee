import type { PhaseRecord, RunRecord } from "@periodic-eval/contracts";
import { graceText } from "@periodic-eval/core/console";
import { edgesText, isWithinGrace, undisturbed } from "@periodic-eval/store";
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
import { rowTable, type RowColumn } from "../html/table.ts";
import { verdictTag, voidTag } from "../html/verdict.ts";
import {
  edgeHeadings,
  isOnlyAtEnd,
  summarizePhases,
  type MetricSummary,
  type PhaseSummary,
} from "./phase-summary.ts";

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

/** Formats the values at the start and at the end of a phase; one of them is missing if there is one measurement. */
export function edgeValues(summary: MetricSummary): readonly [string, string] {
  const { isSingle, start, end, unit } = summary;
  return [
    isOnlyAtEnd(summary) ? missingValueText : formatMeasurement(start, unit),
    isSingle && !isOnlyAtEnd(summary) ? missingValueText : formatMeasurement(end, unit),
  ];
}

function columnsOf(metrics: readonly MetricSummary[]): readonly RowColumn<MetricSummary>[] {
  const [first, last] = edgeHeadings(metrics);
  return [
    ["metric", ({ id, metric }) => `${humanizeName(id)}: ${humanizeName(metric)}`],
    [first, (summary) => edgeValues(summary)[0]],
    [last, (summary) => edgeValues(summary)[1]],
    [
      "change",
      ({ change, unit, isOverPairs }) =>
        html`${formatDelta(change?.delta, unit)}${change !== null && isOverPairs && html` <small class="below">${overPairs(change)}</small>`}`,
    ],
    [term("95 % interval"), ({ change, unit }) => formatInterval(change?.ci95, unit)],
    [
      term("p-value", "p"),
      ({ change }) => (change ? formatP(change.p_value).replace(/^p (= )?/, "") : missingValueText),
    ],
    [
      term("verdict"),
      ({ voidReason, change, against }) =>
        html`${voidReason === null ? (verdictTag(change) ?? missingValueText) : voidTag(voidReason)}${change?.verdict && change.exploratory && html` <small>exploratory</small>`}
      ${against && html`<small>against ${against}</small>`}`,
      "left",
    ],
    [
      term("detectable change", "detectable"),
      ({ change, unit }) =>
        change ? formatDelta(change.minimal_detectable_change, unit).replace("+", "±") : missingValueText,
    ],
  ];
}

function phaseTable({ phase, phaseIndex, metrics }: PhaseSummary): Html {
  const hasLength = phase.maxSteps !== null || phase.state !== "finished";
  const length = hasLength ? `${phaseText(phase)}, ` : "";
  const shown = metrics.filter(({ metric }) => !isGroupMetric(metric));
  const cost = `measuring took ${formatCost(phase)}`;
  const constant = shown.filter((summary) => !summary.isPrimary && isConstant(phase, summary));
  const options = {
    className: phaseAccent(phaseIndex),
    rowClass: ({ isPrimary }: MetricSummary) => isPrimary && "primary",
  };
  const columns = columnsOf(shown);
  const whole = rowTable(
    `Phase ${phase.name}`,
    shown.filter((summary) => !constant.includes(summary)),
    columns,
    { ...options, caption: html`<span class="phase">${phase.name}</span> ${length}${cost}` },
  );
  if (constant.length === 0) return whole;
  return html`${whole}
    <details>
      <summary>The same in every measurement of ${phase.name} <span>${plural(constant.length, "metric")}</span></summary>
      ${rowTable(`Metrics of ${phase.name} that did not change`, constant, columns, options)}
    </details>`;
}

/** Whether a metric has one value in all measurements of a phase. */
function isConstant({ snapshots }: PhaseRecord, { id, metric }: MetricSummary): boolean {
  const values = snapshots
    .filter((snapshot) => snapshot.id === id)
    .flatMap(({ metrics }) => metrics[metric]?.value ?? []);
  return values.length > 1 && values.every((value) => value === values[0]);
}

/**
 * Formats what measuring cost in a phase: `5.07 s, within the 60 s that the budget always allows` if those left everything whole,
 * else `5.07 s, overhead 18.4 %`. `5.07 s at start and end`, which have no limit, if nothing was measured between them.
 */
export function formatCost(phase: PhaseRecord): string {
  const seconds = formatSeconds(phase.evaluationSeconds);
  // A training in another process does not wait for measurements.
  if (isElsewhere(phase)) return `${seconds}, overhead not applicable`;
  const edges = edgesText(phase.snapshots);
  if (edges !== null) return `${seconds} ${edges}`;
  const overhead = `${seconds}, overhead ${formatPercent(phase.overheadPercent)}`;
  if (hasNoCeiling(phase)) return `${overhead}, no ceiling set`;
  return isWithinGrace(phase.snapshots) ? `${seconds}, ${graceText(phase.snapshots)}` : overhead;
}

/** Whether a phase was trained in another process, so that its overhead is unknown. */
const isElsewhere = ({ snapshots }: PhaseRecord): boolean =>
  undisturbed(snapshots)?.answer === "not applicable";

/** Whether the overhead governor was off during a phase. */
function hasNoCeiling({ snapshots }: PhaseRecord): boolean {
  // A skipped or failed snapshot may say `off` because it ended before the governor decided.
  const measured = snapshots.filter(({ status }) => status !== "skipped" && status !== "failed");
  return measured.length > 0 && measured.every(({ timing }) => timing.governor === "off");
}
