import type { PhaseRecord } from "@periodic-eval/core/snapshots";
import { formatPercent } from "../html/format.ts";

/** `18.4 %`, and `142.8 %, no ceiling set`: nobody should take that for a number that a ceiling held. */
export function formatOverhead(phase: PhaseRecord): string {
  return `${formatPercent(phase.overheadPercent)}${hasNoCeiling(phase) ? ", no ceiling set" : ""}`;
}

/** Whether a phase was measured with the governor of overhead off. */
export function hasNoCeiling({ snapshots }: PhaseRecord): boolean {
  // A firing that was skipped or failed may say `off` where the governor was on and never asked.
  const measured = snapshots.filter(({ status }) => status !== "skipped" && status !== "failed");
  return measured.length > 0 && measured.every(({ timing }) => timing.governor === "off");
}
