import { formatDelta, formatValue, humanizeName } from "@periodic-eval/core/statistics";
import type { PreferenceSummary, StepLine } from "@periodic-eval/feedback";

/** Returns one line of progress: `concise  step 3  margin +2.1 nats …`. A null `line` stands for the untrained model. */
export function stepText(preference: string, line: StepLine | null, summary: PreferenceSummary): string {
  if (line === null)
    return `${preference}  the model before any update: compliance ${formatValue(summary.baseline_compliance, "share")}`;
  const { logprob_margin: margin, preference_compliance: compliance, collapse } = line.eval;
  const alerts =
    collapse === null || collapse.alerts.length === 0
      ? ""
      : `  ALERT ${collapse.alerts.map(humanizeName).join(", ")}`;
  return [
    `${preference}  step ${line.step}`,
    `margin ${formatDelta(margin?.margin_delta, "nats")}`,
    `compliance ${formatValue(compliance?.held_out, "share")} (seen ${formatValue(compliance?.seen, "share")})`,
    `${line.timing_s.toFixed(1)} s${alerts}`,
  ].join("  ");
}
