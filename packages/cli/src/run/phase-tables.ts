import {
  formatChange,
  formatInterval,
  formatMeasurement,
  formatOverhead,
  formatPercent,
  formatSeconds,
  isGroupMetric,
  summarizePhases,
  humanizeName,
  type MetricSummary,
  type PhaseSummary,
} from "@periodic-eval/dashboard";
import { verdictText } from "@periodic-eval/loggers/console";
import type { RunRecord } from "@periodic-eval/core/snapshots";
import { plainTable } from "../terminal/plain-table.ts";
import type { Colours } from "../terminal/terminal.ts";

const columns = [{ words: "metric" }, "start", "end", "change", "95 % interval", { words: "verdict" }];

/** Whether a table shows a metric. Groups are only on the page, and a metric that is 0 at both ends is left out. */
const isShown = ({ metric, isPrimary, start, end }: MetricSummary): boolean =>
  isPrimary || (!isGroupMetric(metric) && !(start.value === 0 && end.value === 0));

/**
 * Returns a table per phase with overhead above it: start → end, change with its interval, and the verdict. A metric with
 * groups has one row, for the whole.
 */
export function phaseTables(run: RunRecord, colours: Colours): string {
  const shown = summarizePhases(run).map(({ phase, metrics }) => ({
    phase,
    metrics: metrics.filter(isShown),
  }));
  const tables = shown.map(
    ({ phase, metrics }) =>
      `${phaseTitle(phase, colours)}\n${plainTable(
        columns,
        metrics.map((metric) => metricRow(metric, colours)),
        colours,
      )}`,
  );
  const isOverPairs = shown.some(({ metrics }) => metrics.some((metric) => metric.isOverPairs));
  return [...tables, ...(isOverPairs ? [colours.dim(pairsNote)] : [])].join("\n\n");
}

const pairsNote =
  "Over paired items: the change is the mean over items that both measurements observed, so it can differ from end minus start.";

function phaseTitle(phase: PhaseSummary["phase"], colours: Colours): string {
  const { name, maxSteps, evaluationSeconds } = phase;
  const length = maxSteps === null ? "" : `${maxSteps} ${maxSteps === 1 ? "step" : "steps"}, `;
  return `${colours.bold(name)}  ${length}measuring ${formatSeconds(evaluationSeconds)}, overhead ${formatOverhead(phase)}`;
}

function metricRow(summary: MetricSummary, colours: Colours): readonly string[] {
  const { id, metric, unit, start, end, change, against } = summary;
  const verdict = verdictText(change?.verdict ?? null, colours);
  const level =
    change?.alpha == null || verdict === null ? "" : colours.dim(` at ${formatPercent(100 * change.alpha)}`);
  const exploratory = verdict && change?.exploratory ? colours.dim(" (exploratory)") : "";
  return [
    `${humanizeName(id)}: ${humanizeName(metric)}`,
    formatMeasurement(start, unit),
    `→ ${formatMeasurement(end, unit)}`,
    formatChange(summary),
    formatInterval(change?.ci95, unit),
    (verdict ?? "–") + level + exploratory + (against === null ? "" : colours.dim(` against ${against}`)),
  ];
}
