import { formatDelta, formatValue, humanizeName, missingValueText } from "@periodic-eval/core/statistics";
import { formatP, writeFeedback, type FeedbackSummary } from "@periodic-eval/dashboard";
import { plainTable } from "../terminal/plain-table.ts";
import type { Colours, Terminal } from "../terminal/terminal.ts";
import { pageLine } from "./report-run.ts";

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

/**
 * Returns a table of the results of training on feedback, one row per preference, and a line for each value that is not known:
 * preferences, value and reason.
 */
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
    result.collapse_alerts === null
      ? missingValueText
      : result.collapse_alerts.map(humanizeName).join(", ") || "none",
    result.verdict,
  ]);
  const unknown = new Map<string, readonly string[]>();
  for (const [name, result] of Object.entries(preferences))
    for (const [value, reason] of Object.entries(result.unknown ?? {})) {
      const note = `${humanizeName(value)}: ${reason}`;
      unknown.set(note, [...(unknown.get(note) ?? []), name]);
    }
  const notes = [
    ...[...unknown].map(([note, names]) => `${names.join(", ")}, not known: ${note}`),
    ...Object.entries(preferences).flatMap(([name, result]) =>
      result.final_compliance === null && typeof result.final_seen_compliance === "number"
        ? [
            `${name}, compliance on training prompts: ${formatValue(result.baseline_seen_compliance, "share")} → ${formatValue(result.final_seen_compliance, "share")}`,
          ]
        : [],
    ),
  ];
  return [plainTable(columns, rows, colours), ...notes].join("\n");
}

/** Writes the page and plots of a training on feedback, then prints its table and the page's path, or one JSON document. */
export async function reportFeedback(
  output: string,
  options: { readonly json: boolean; readonly page?: string },
  terminal: Terminal,
): Promise<void> {
  const { run, page, plots } = await writeFeedback(
    output,
    options.page === undefined ? {} : { page: options.page },
  );
  const { summary } = run;
  if (options.json)
    return terminal.out(JSON.stringify({ output_dir: output, ...summary, page, plots }, null, 2));
  terminal.out(`\n${feedbackTable(summary, terminal.colours)}\n`);
  terminal.out(pageLine(page));
}
