import { formatDelta, formatInterval, formatP, formatValue, humanizeName } from "@periodic-eval/dashboard";
import type { ComparedMetric, GroupSummary } from "./run.ts";
import { plainTable } from "../../terminal/plain-table.ts";
import type { Colours } from "../../terminal/terminal.ts";

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

/** A table per phase and metric: each group's change, and how it differs from the first group's; under it the runs left out. */
export function groupTables(compared: readonly ComparedMetric[], colours: Colours): string {
  const tables = compared.map(({ phase, id, metric, unit, groups, leftOut }) => {
    const title = `${colours.bold(phase)}  ${humanizeName(id)}: ${humanizeName(metric)}`;
    const rows = groups.map((group) => rowOf(group, unit));
    const missing = leftOut.map(({ run, reason }) => colours.yellow(`Left out: ${run}: ${reason}`));
    return [title, plainTable(columns, rows, colours), ...missing].join("\n");
  });
  const isSingle = compared.some(({ groups }) => groups.some(({ runs }) => runs === 1));
  const note = "One run says nothing of how its condition varies: a group of one has no interval.";
  return [...tables, ...(isSingle ? [colours.dim(note)] : [])].join("\n\n");
}

const rowOf = ({ group, runs, start, end, change, difference }: GroupSummary, unit: string): string[] => [
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
