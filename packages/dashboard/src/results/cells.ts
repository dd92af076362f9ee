import { formatTime, missingValueText, plural } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { verdictGlyph, verdictStyles } from "../html/verdict.ts";
import type { Change } from "./paired-change.ts";
import type { MetricResult, ResultsSummary } from "./summarize-results.ts";

const minus = (text: string): string => text.replace("-", "−");

/** Formats a score with four decimals, as lm-evaluation-harness does, or with two if it is 100 or more. */
export const formatScore = (value: number | null): string =>
  value === null ? missingValueText : minus(value.toFixed(Math.abs(value) >= 100 ? 2 : 4));

export const formatScoreChange = (delta: number | null): string =>
  delta === null ? missingValueText : (delta > 0 ? "+" : "") + formatScore(delta);

export const changeGlyph = (verdict: Change["verdict"]): string =>
  verdict === null ? "" : verdictGlyph(verdict);

/** Renders a score with its standard error, `0.4112 ± 0.0144`, and the change below it. */
export function scoreCell({ value, stderr, n, ci95, change }: MetricResult): Html {
  const interval = ci95 === null ? "" : `, 95 % ${formatScore(ci95[0])} to ${formatScore(ci95[1])}`;
  const title = value === null ? "not measured" : `n = ${n ?? missingValueText}${interval}`;
  return html`<td class="score" title="${title}">
    <strong>${formatScore(value)}</strong>${stderr !== null && html` <span class="same">± ${formatScore(stderr)}</span>`}
    ${change && changeNote(change)}
  </td>`;
}

function changeNote({ delta, ci95, verdict, pairs }: Change): Html {
  const className = verdict === null ? "none" : verdictStyles[verdict].className;
  const interval =
    ci95 === null
      ? "no interval"
      : `95 % ${formatScoreChange(ci95[0])} to ${formatScoreChange(ci95[1])}: ${verdict ?? missingValueText}`;
  const title = `${interval} (${pairs === null ? "as independent samples" : plural(pairs, "pair")})`;
  return html`<small class="${className}" title="${title}"><span role="img" aria-label="${verdict ?? ""}">${changeGlyph(verdict)}</span> ${formatScoreChange(delta)}</small>`;
}

/** Renders a run's name as the heading of its row. Adds its time if several runs have this name. */
export function runCell({ runs, reference }: ResultsSummary, at: number): Html {
  const { name, timestamp } = runs[at]!;
  const isOneOfSeveral = runs.filter((run) => run.name === name).length > 1;
  return html`<th scope="row" class="run">
    <span class="${at === reference && "reference"}">${name}</span>
    ${isOneOfSeveral && html`<small>${formatTime(timestamp)}</small>`}
    ${at === reference && html`<small>reference</small>`}
  </th>`;
}
