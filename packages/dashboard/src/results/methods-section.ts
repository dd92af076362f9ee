import { plural } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { table } from "../html/table.ts";
import { verdictKey, verdictStyles } from "../html/verdict.ts";
import { changeGlyph, formatScore, formatScoreChange, metricName } from "./task-section.ts";
import type { ResultsRun } from "./paired-change.ts";
import type { MethodChange, MethodResult, MethodsSummary } from "./summarize-methods.ts";

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
    ({ label, runs: own }, at) => html`<tr>
      <th scope="row" class="run">
        <span class="${at === baseline && "reference"}">${label}</span>
        <small title="${own.map((run) => runs[run]!.name).join(", ")}">${plural(own.length, "run")}</small>
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
      comparisons; ${verdictKey}. ${intervalNote(methods.map((method) => method.runs.length))}
    </p>
    ${table("Methods", [{ heading: "method" }, ...columns], rows)}
  </section>`;
}

const intervalNote = (counts: readonly number[]): string =>
  counts.every((count) => count === 1)
    ? "Each method has one run: intervals are over answers, and do not show how training varies."
    : "A method with several runs shows their mean. Between two such methods, intervals are over runs and include how training varies. Against a single run, intervals are over answers: they hold for these runs, and do not show how training varies.";

function methodCell({ value, ci95, runs, change }: MethodResult, base: MethodResult): Html {
  const interval = ci95 === null ? "" : `, 95 % ${formatScore(ci95[0])} to ${formatScore(ci95[1])}`;
  const title = value === null ? "not measured" : `${runs > 1 ? `mean of ${runs} runs` : "1 run"}${interval}`;
  return html`<td class="score" title="${title}">
    <strong>${formatScore(value)}</strong> ${change && changeLines(change, runs, base.runs)}
  </td>`;
}

function changeLines(change: MethodChange, runs: number, base: number): Html {
  const { delta, ci95, verdict } = change;
  const className = verdict === null ? "none" : verdictStyles[verdict].className;
  const limits = ci95 === null ? "no interval" : `[${ci95.map(formatScoreChange).join(", ")}]`;
  return html`<small class="${className}"
      ><span role="img" aria-label="${verdict ?? ""}">${changeGlyph(verdict)}</span> ${formatScoreChange(delta)}
      ${limits}</small
    ><small class="none">${changeOver(change, runs, base)}</small>`;
}
