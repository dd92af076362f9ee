import type { Json } from "@periodic-eval/core";
import type { Interval } from "@periodic-eval/core/statistics";
import { plural, isMap, formatTime, missingValueText } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { table } from "../html/table.ts";
import { verdictGlyph, verdictKey, verdictStyles } from "../html/verdict.ts";
import type { Change, ResultsRun } from "./paired-change.ts";
import type { MethodChange, MethodResult, MethodsSummary } from "./summarize-methods.ts";
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
  const error = stderr !== null && html` <span class="same">± ${formatScore(stderr)}</span>`;
  const limits = ci95 === null ? "" : `, ${limitsText(ci95, formatScore)}`;
  return scoreTag(
    value,
    `n = ${n ?? missingValueText}${limits}`,
    html`${error} ${change && changeNote(change)}`,
  );
}

const limitsText = ([low, high]: Interval, format: (value: number) => string): string =>
  `95 % ${format(low)} to ${format(high)}`;

const scoreTag = (value: number | null, title: string, more: Html): Html =>
  html`<td class="score" title="${value === null ? "not measured" : title}">
    <strong>${formatScore(value)}</strong>${more}
  </td>`;

function changeNote(change: Change): Html {
  const { ci95, verdict, pairs } = change;
  const interval =
    ci95 === null ? "no interval" : `${limitsText(ci95, formatScoreChange)}: ${verdict ?? missingValueText}`;
  const title = `${interval} (${pairs === null ? "as independent samples" : plural(pairs, "pair")})`;
  return html`<small class="${classOf(change)}" title="${title}">${changeMark(change)}</small>`;
}

const classOf = ({ verdict }: Pick<Change, "verdict">): string =>
  verdict === null ? "none" : verdictStyles[verdict].className;

const changeMark = ({ delta, verdict }: Pick<Change, "delta" | "verdict">): Html =>
  html`<span role="img" aria-label="${verdict ?? ""}">${changeGlyph(verdict)}</span> ${formatScoreChange(delta)}`;

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

/** Returns what the interval of a change is over: `1172 pairs of answers, these 3 runs against 1`, `over 3 runs against 2`. */
export function changeOver({ over, pairs }: MethodChange, own: number, base: number): string {
  if (over === "runs") return `over ${plural(own, "run")} against ${base}`;
  const units = over === "documents" ? `${plural(pairs!, "pair")} of answers` : "independent samples";
  return own === 1 && base === 1
    ? units
    : `${units}, ${own === 1 ? "this run" : `these ${own} runs`} against ${base}`;
}

/** Renders a row for each method and a column for each task, with the change against the baseline and its interval. */
export function methodsSection(
  { methods, baseline, metrics }: MethodsSummary,
  runs: readonly Pick<ResultsRun, "name">[],
): Html {
  const rows = methods.map(
    ({ label, runs: members }, at) => html`<tr>
      <th scope="row" class="run">
        <span class="${at === baseline && "reference"}">${label}</span>
        <small title="${members.map((run) => runs[run]!.name).join(", ")}">${plural(members.length, "run")}</small>
        ${at === baseline && html`<small>baseline</small>`}
      </th>
      ${metrics.map(({ measured }) => methodCell(measured[at]!, measured[baseline]!))}
    </tr>`,
  );
  const columns = metrics.map((metric) => `${metric.task} ${metricName(metric)}`);
  return html`<section>
    <h2>Methods</h2>
    <p class="sub">
      Below each value: the change against ${methods[baseline]!.label} and its 95 % interval, without correction for multiple
      comparisons; ${verdictKey}. ${intervalNote(methods)}
    </p>
    ${table("Methods", [{ heading: "method" }, ...columns], rows)}
  </section>`;
}

/** Says what the intervals of a comparison of methods are over. */
export const intervalNote = (methods: MethodsSummary["methods"]): string =>
  methods.every(({ runs }) => runs.length === 1)
    ? "Each method has one run: intervals are over answers, and do not show how training varies."
    : "A method with several runs shows their mean. Between two such methods, intervals are over runs and include how training varies. Against a single run, intervals are over answers: they hold for these runs, and do not show how training varies.";

function methodCell({ value, ci95, runs, change }: MethodResult, base: MethodResult): Html {
  const limits = ci95 === null ? "" : `, ${limitsText(ci95, formatScore)}`;
  const title = `${runs > 1 ? `mean of ${runs} runs` : "1 run"}${limits}`;
  return scoreTag(value, title, html` ${change && changeLines(change, runs, base.runs)}`);
}

function changeLines(change: MethodChange, runs: number, base: number): Html {
  const { ci95 } = change;
  const limits = ci95 === null ? "no interval" : `[${ci95.map(formatScoreChange).join(", ")}]`;
  return html`<small class="${classOf(change)}">${changeMark(change)} ${limits}</small
    ><small class="none">${changeOver(change, runs, base)}</small>`;
}
