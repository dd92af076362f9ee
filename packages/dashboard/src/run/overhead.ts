import { graceText } from "@periodic-eval/core/console";
import { isOnlyEdges, isWithinGrace, undisturbed } from "@periodic-eval/store";
import { type PhaseRecord } from "@periodic-eval/contracts";
import { formatPercent, formatSeconds } from "../html/format.ts";

/**
 * Formats a phase's overhead: `18.4 %`; `142.8 %, within the grace` if the budget's grace allowed more than its ceiling; `142.8 %,
 * no ceiling set` if nothing limited it; `not applicable` if training ran in another process, which does not wait for measurements.
 */
export function formatOverhead(phase: PhaseRecord): string {
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
