import { formatDelta, formatValue, humanizeName } from "@periodic-eval/core/statistics";
import { formatP, type FeedbackSummary } from "@periodic-eval/dashboard";
import type { PreferenceSummary, StepLine } from "@periodic-eval/feedback";
import { plainTable } from "../../terminal/plain-table.ts";
import type { Colours } from "../../terminal/terminal.ts";

/** One line of progress: `concise  step 3  margin +2.1 nats …`. */
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

/** What was found, a row a preference. */
export function feedbackTable(
  { preferences }: Pick<FeedbackSummary, "preferences">,
  colours: Colours,
): string {
  return plainTable(
    [
      { words: "preference" },
      "steps",
      "margin",
      "by token",
      "p",
      "compliance",
      "",
      "ability",
      { words: "alerts" },
      { words: "verdict" },
    ],
    Object.entries(preferences).map(([name, one]) => [
      name,
      String(one.steps),
      formatDelta(one.logprob_margin_delta, "nats"),
      formatDelta(one.logprob_margin_per_token_delta, "nats"),
      formatP(one.logprob_margin_p).replace(/^p (= )?/, ""),
      formatValue(one.baseline_compliance, "share"),
      `→ ${formatValue(one.final_compliance, "share")}`,
      formatValue(one.capability_ratio, ""),
      one.collapse_alerts.map(humanizeName).join(", ") || "none",
      one.verdict,
    ]),
    colours,
  );
}
