import type { Json } from "@periodic-eval/core";
import { plural, isMap, formatTime, missingValueText } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { table } from "../html/table.ts";
import { verdictGlyph, verdictStyles } from "../html/verdict.ts";
import type { Change } from "./paired-change.ts";
import {
  type ResultsMetric,
  type ResultsSummary,
  type ResultsTask,
  type MetricResult,
  withLimits,
} from "./summarize-results.ts";

/** Renders a task: a row for each run, the best first, a column for each metric, and the task's groups. */
export function taskSection(summary: ResultsSummary, task: ResultsTask): Html {
  const { name, settings, metrics, groups, order } = task;
  const [primary] = metrics;
  if (primary === undefined) return html``;
  const rows = order.map(
    (at) => html`<tr>
      ${runCell(summary, at)} ${scoreCell(primary.measured[at]!)}
      ${intervalPlot(primary, at, summary.reference)}
      ${metrics.slice(1).map(({ measured }) => scoreCell(measured[at]!))}
    </tr>`,
  );
  const columns = [
    { heading: "run" },
    metricName(primary),
    { heading: "95 % interval", className: "plot" },
    ...metrics.slice(1).map(metricName),
  ];
  return html`<section>
    <h2>${name}</h2>
    <p class="sub">${settingsText(settings)}${sizeText(primary)}</p>
    ${table(name, columns, rows)}
    ${
      groups.length > 0 &&
      html`<details>
        <summary>${plural(groups.length, "group")} by ${metricName(groups[0]!)}</summary>
        ${groupTable(summary, task)}
      </details>`
    }
  </section>`;
}

/** Renders a row for each group and a column for each run, in the task's order. */
function groupTable({ runs }: ResultsSummary, { name, groups, order }: ResultsTask): Html {
  const rows = groups.map(
    ({ group, measured }) => html`<tr>
      <th scope="row" class="run">${group}</th>
      ${order.map((at) => scoreCell(measured[at]!))}
    </tr>`,
  );
  return table(`Groups of ${name}`, [{ heading: "group" }, ...order.map((at) => runs[at]!.name)], rows);
}

/** Names a metric and its direction: `acc ↑`, `exact_match, strict-match ↑`. */
export function metricName({
  metric,
  filter,
  higherIsBetter,
}: Pick<ResultsMetric, "metric" | "filter" | "higherIsBetter">): string {
  const arrow = higherIsBetter === null ? "" : higherIsBetter ? " ↑" : " ↓";
  return `${metric}${filter === "none" ? "" : `, ${filter}`}${arrow}`;
}

/** Describes the task's settings: `5 shots, limit 1000; `. */
function settingsText(settings: Json): string {
  if (!isMap(settings)) return "";
  const { shots, limit, subsample } = settings;
  const parts = [
    ...(typeof shots === "number" ? [plural(shots, "shot")] : []),
    ...(typeof limit === "number" ? [`limit ${limit}`] : []),
    ...(typeof subsample === "number" ? [`${subsample} documents sampled`] : []),
  ];
  return parts.length === 0 ? "" : `${parts.join(", ")}; `;
}

function sizeText({ measured }: ResultsMetric): string {
  const sizes = [...new Set(measured.flatMap(({ n, value }) => (n === null || value === null ? [] : [n])))];
  return sizes.length === 0 ? "unknown n" : `n = ${sizes.join(", ")}`;
}

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

const plotWidth = 190;
const plotHeight = 26;
const plotMargin = 6;

/** Draws one run's value and interval on the scale of all runs, with the reference run's value as a line. */
function intervalPlot({ measured }: ResultsMetric, run: number, reference: number | null): Html {
  const limits = measured.map(withLimits);
  const ends = limits.flatMap(({ value, ci95 }) => [...(value === null ? [] : [value]), ...(ci95 ?? [])]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const span = high - low || 1;
  const x = (value: number): string =>
    (plotMargin + ((value - low) / span) * (plotWidth - 2 * plotMargin)).toFixed(1);
  const { value, ci95 } = limits[run]!;
  if (value === null) return html`<td class="plot"></td>`;
  const base = reference === null ? null : limits[reference]!.value;
  return html`<td class="plot">
    <svg width="${plotWidth}" height="${plotHeight}" viewBox="0 0 ${plotWidth} ${plotHeight}" aria-hidden="true">
      ${base !== null && html`<line class="of-reference" x1="${x(base)}" x2="${x(base)}" y1="0" y2="${plotHeight}" />`}
      ${
        ci95 &&
        html`<line
          x1="${x(ci95[0])}"
          x2="${x(ci95[1])}"
          y1="${plotHeight / 2}"
          y2="${plotHeight / 2}"
          stroke="currentColor"
          stroke-width="1.5"
        />`
      }
      <circle cx="${x(value)}" cy="${plotHeight / 2}" r="4" fill="currentColor" />
    </svg>
  </td>`;
}
