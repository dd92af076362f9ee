import { formatDelta, formatInterval, formatP, formatValue, humanizeName } from "@periodic-eval/dashboard";
import { plainTable } from "../../terminal/plain-table.ts";
import type { Colours } from "../../terminal/terminal.ts";
import type { ComparedMetric, GroupBy, GroupSummary } from "./run.ts";

const columns = [
  { words: "group" },
  "runs",
  "start",
  "end",
  "change",
  "95 % interval over runs",
  "against the first",
  "95 % interval",
  "p",
];

/** Returns a table per phase and metric: each group's change and its difference from the first group, then the excluded runs. */
export function comparisonTables(compared: readonly ComparedMetric[], colours: Colours): string {
  const tables = compared.map(({ phase, id, metric, unit, groups, leftOut }) => {
    const title = `${colours.bold(phase)}  ${humanizeName(id)}: ${humanizeName(metric)}`;
    const rows = groups.filter(({ runs }) => runs > 0).map((group) => groupRow(group, unit));
    const isEmpty = columns.map((_, at) => rows.every((row) => /^(→ )?–$/.test(row[at]!)));
    const filled = <T>(cells: readonly T[]) => cells.filter((__, at) => !isEmpty[at]);
    const excluded = leftOut.map(({ run, reason }) => colours.yellow(`Left out: ${run}: ${reason}`));
    return [title, plainTable(filled(columns), rows.map(filled), colours), ...excluded].join("\n");
  });
  const hasSingleRun = compared.some(({ groups }) => groups.some(({ runs }) => runs === 1));
  const note = "A group of one run has no interval: one run does not show how its condition varies.";
  return [...tables, ...(hasSingleRun ? [colours.dim(note)] : [])].join("\n\n");
}

const groupRow = ({ group, runs, start, end, change, difference }: GroupSummary, unit: string): string[] => [
  group,
  String(runs),
  formatValue(start.value, unit),
  `→ ${formatValue(end.value, unit)}`,
  formatDelta(change.value, unit),
  formatInterval(change.ci95, unit),
  formatDelta(difference?.value, unit),
  formatInterval(difference?.ci95, unit),
  difference === null ? "–" : formatP(difference.p),
];

export function comparisonJson(compared: readonly ComparedMetric[], groupBy: GroupBy): string {
  const metrics = compared.map(({ leftOut, ...metric }) => ({ ...metric, left_out: leftOut }));
  return JSON.stringify({ group_by: groupBy, metrics }, null, 2);
}
