import { formatTime, missingValueText } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import type { Change } from "./paired-change.ts";
import type { MetricResult, ResultsSummary } from "./summarize-results.ts";

const minus = (text: string): string => text.replace("-", "−");

/** As lm-evaluation-harness prints them, with four decimals; two where the number is large. */
export const formatScore = (value: number | null): string =>
  value === null ? missingValueText : minus(value.toFixed(Math.abs(value) >= 100 ? 2 : 4));

export const formatScoreChange = (delta: number | null): string =>
  delta === null ? missingValueText : (delta > 0 ? "+" : "") + formatScore(delta);

/** A shape beside each colour, so that none is told by colour alone. */
const verdictStyles = {
  better: ["▲", "better"],
  worse: ["▼", "worse"],
  changed: ["◆", "changed"],
  "no evidence": ["○", "none"],
} as const satisfies Record<NonNullable<Change["verdict"]>, readonly [string, string]>;

export const changeGlyph = (verdict: Change["verdict"]): string =>
  verdict === null ? "" : verdictStyles[verdict][0];

/** `0.4112 ± 0.0144`, and below it the change. */
export function scoreCell({ value, stderr, n, ci95, change }: MetricResult): Html {
  const interval = ci95 === null ? "" : `, 95 % ${formatScore(ci95[0])} to ${formatScore(ci95[1])}`;
  const title = value === null ? "not measured" : `n = ${n ?? missingValueText}${interval}`;
  return html`<td class="score" title="${title}">
    <strong>${formatScore(value)}</strong>${stderr !== null && html` <span class="same">± ${formatScore(stderr)}</span>`}
    ${change && changeNote(change)}
  </td>`;
}

function changeNote({ delta, ci95, verdict, pairs }: Change): Html {
  const [glyph, className] = verdict === null ? ["", "none"] : verdictStyles[verdict];
  const interval =
    ci95 === null
      ? "no interval is known"
      : `95 % ${formatScoreChange(ci95[0])} to ${formatScoreChange(ci95[1])}: ${verdict ?? missingValueText}`;
  const title = `${interval} (${pairs === null ? "as of independent samples" : `${pairs} pairs`})`;
  return html`<small class="${className}" title="${title}"><span role="img" aria-label="${verdict ?? ""}">${glyph}</span> ${formatScoreChange(delta)}</small>`;
}

/** A run's name as the head of its row; with its time where another has the name too. */
export function runCell({ runs, reference }: ResultsSummary, at: number): Html {
  const { name, timestamp } = runs[at]!;
  const isOneOfSeveral = runs.filter((run) => run.name === name).length > 1;
  return html`<th scope="row" class="run">
    <span class="${at === reference && "reference"}">${name}</span>
    ${isOneOfSeveral && html`<small>${formatTime(timestamp)}</small>`}
    ${at === reference && html`<small>reference</small>`}
  </th>`;
}
