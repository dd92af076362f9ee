import type { PhaseRecord } from "@periodic-eval/core/snapshots";
import { formatPercent } from "../html/format.ts";

/** Formats a phase's overhead: `18.4 %`, or `142.8 %, no ceiling set` if nothing limited it. */
export function formatOverhead(phase: PhaseRecord): string {
  return `${formatPercent(phase.overheadPercent)}${hasNoCeiling(phase) ? ", no ceiling set" : ""}`;
}

/** Whether the overhead governor was off during a phase. */
export function hasNoCeiling({ snapshots }: PhaseRecord): boolean {
  // A skipped or failed snapshot may say `off` because it ended before the governor decided.
  const measured = snapshots.filter(({ status }) => status !== "skipped" && status !== "failed");
  return measured.length > 0 && measured.every(({ timing }) => timing.governor === "off");
}
