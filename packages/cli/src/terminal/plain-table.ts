import {
  formatChange,
  formatInterval,
  formatLook,
  formatOverhead,
  formatPercent,
  formatSeconds,
  isOfGroup,
  summarizePhases,
  humanizeName,
  type MetricSummary,
  type PhaseSummary,
} from "@periodic-eval/dashboard";
import { verdictText } from "@periodic-eval/loggers/console";
import type { RunRecord } from "@periodic-eval/core/snapshots";
import Table from "cli-table3";
import type { Colours } from "./terminal.ts";

/** A column: numbers to the right by default, words to the left. */
export type Column = string | { readonly words: string };

const borders = [
  "top",
  "top-mid",
  "top-left",
  "top-right",
  "bottom",
  "bottom-mid",
  "bottom-left",
  "bottom-right",
  "left",
  "left-mid",
  "mid",
  "mid-mid",
  "right",
  "right-mid",
] as const;
const noBorders = Object.fromEntries(borders.map((name) => [name, ""]));

/** A table without rules. */
export function plainTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  colours: Colours,
): string {
  const table = new Table({
    head: columns.map((column) => colours.dim(typeof column === "string" ? column : column.words)),
    chars: { ...noBorders, middle: "  " },
    colAligns: columns.map((column) => (typeof column === "string" ? "right" : "left")),
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
  });
  table.push(...rows.map((row) => [...row]));
  return table.toString().replaceAll(/ +$/gm, "");
}

const phaseColumns = [{ words: "metric" }, "start", "end", "change", "95 % interval", { words: "verdict" }];

/** Groups are on the page, and what was nothing at either end is not news. */
const isTold = ({ metric, isPrimary, start, end }: MetricSummary): boolean =>
  isPrimary || (!isOfGroup(metric) && !(start.value === 0 && end.value === 0));

/**
 * A table per phase: start → end, change with its interval, the verdict's word; overhead above it. Of metrics that have
 * groups the whole only.
 */
export function phaseTables(run: RunRecord, colours: Colours): string {
  const told = summarizePhases(run).map(({ phase, metrics }) => ({ phase, metrics: metrics.filter(isTold) }));
  const tables = told.map(
    ({ phase, metrics }) =>
      `${phaseTitle(phase, colours)}\n${plainTable(
        phaseColumns,
        metrics.map((metric) => metricRow(metric, colours)),
        colours,
      )}`,
  );
  const isOverPairs = told.some(({ metrics }) => metrics.some((metric) => metric.isOverPairs));
  return [...tables, ...(isOverPairs ? [colours.dim(pairsNote)] : [])].join("\n\n");
}

const pairsNote =
  "Over paired items: of those that both looks observed, item by item, and so not end minus start.";

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
    formatLook(start, unit),
    `→ ${formatLook(end, unit)}`,
    formatChange(summary),
    formatInterval(change?.ci95, unit),
    (verdict ?? "–") + level + exploratory + (against === null ? "" : colours.dim(` against ${against}`)),
  ];
}
