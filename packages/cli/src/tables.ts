import {
  formatDelta,
  formatInterval,
  formatPercent,
  formatSeconds,
  formatValue,
  summarizePhases,
  words,
  type PhaseSummary,
} from "@periodic-eval/dashboard";
import type { RunRecord } from "@periodic-eval/core/snapshots";
import Table from "cli-table3";
import pc from "picocolors";
import { colourOf } from "./live-line.ts";

/** Rules between head and body only; numbers to the right. */
export function plainTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  textColumns: readonly number[],
): string {
  const none = {
    top: "",
    "top-mid": "",
    "top-left": "",
    "top-right": "",
    bottom: "",
    "bottom-mid": "",
    "bottom-left": "",
    "bottom-right": "",
    left: "",
    "left-mid": "",
    right: "",
    "right-mid": "",
    mid: "",
    "mid-mid": "",
    middle: "  ",
  };
  const table = new Table({
    head: head.map((title) => pc.dim(title)),
    chars: none,
    colAligns: head.map((_, column) => (textColumns.includes(column) ? "left" : "right")),
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
  });
  table.push(...rows.map((row) => [...row]));
  return table.toString();
}

/** A table per phase: start → end, change with its interval, the verdict's word; overhead above it. */
export function phaseTables(run: RunRecord): string {
  return summarizePhases(run).map(phaseTable).join("\n\n");
}

function phaseTable({ phase, metrics }: PhaseSummary): string {
  const title = `${pc.bold(phase.name)}  ${phase.maxSteps === null ? "" : `${phase.maxSteps} steps, `}measuring ${formatSeconds(phase.evaluationSeconds)}, overhead ${formatPercent(phase.overheadPercent)}`;
  const rows = metrics.map(({ id, metric, unit, start, end, change }) => [
    `${words(id)}: ${words(metric)}`,
    formatValue(start.value, unit),
    `→ ${formatValue(end.value, unit)}`,
    formatDelta(change?.delta, unit),
    formatInterval(change?.ci95, unit),
    change?.verdict
      ? colourOf[change.verdict](change.verdict) + (change.exploratory ? pc.dim(" (exploratory)") : "")
      : "–",
  ]);
  return `${title}\n${plainTable(["metric", "start", "end", "change", "95 % interval", "verdict"], rows, [0, 5])}`;
}
