import { formatDelta, formatValue, humanizeName } from "@periodic-eval/core/statistics";
import { formatP, type FeedbackSummary } from "@periodic-eval/dashboard";
import { plainTable } from "../terminal/plain-table.ts";
import type { Colours } from "../terminal/terminal.ts";

const columns = [
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
];

/** Returns a table of the results of training on feedback, one row per preference. */
export function feedbackTable(
  { preferences }: Pick<FeedbackSummary, "preferences">,
  colours: Colours,
): string {
  const rows = Object.entries(preferences).map(([name, result]) => [
    name,
    String(result.steps),
    formatDelta(result.logprob_margin_delta, "nats"),
    formatDelta(result.logprob_margin_per_token_delta, "nats"),
    formatP(result.logprob_margin_p).replace(/^p (= )?/, ""),
    formatValue(result.baseline_compliance, "share"),
    `→ ${formatValue(result.final_compliance, "share")}`,
    formatValue(result.capability_ratio, ""),
    result.collapse_alerts.map(humanizeName).join(", ") || "none",
    result.verdict,
  ]);
  return plainTable(columns, rows, colours);
}
