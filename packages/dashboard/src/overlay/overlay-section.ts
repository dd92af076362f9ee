import { runSteps } from "../charts/metric-curves.ts";
import { chartPlace, lineSample } from "../charts/run-chart.ts";
import { capitalized, formatInterval, formatValue, humanizeName, plural } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { rowTable } from "../html/table.ts";
import type { RunData } from "../page-data/run-data.ts";
import { sharedPhases, type NamedRun, type OverlaidMetric } from "./summarize-overlay.ts";

/** A run that the reader can select, and the address of the page with the selection changed. */
export interface SelectableRun {
  readonly name: string;
  readonly isSelected: boolean;
  readonly address: string;
}

/** Renders a link per run that adds it to the selection or removes it. Links need neither a script nor a form. */
export const runSelection = (runs: readonly SelectableRun[]): Html =>
  html`<nav aria-label="Runs to compare">
    <ul class="selection">
      ${runs.map(
        ({ name, isSelected, address }) =>
          html`<li>
            <a href="${address}" aria-label="${isSelected ? "Remove" : "Add"} ${name}"><span aria-hidden="true">${isSelected ? "☑" : "☐"}</span> ${name}</a>
          </li>`,
      )}
    </ul>
  </nav>`;

/** Renders the primary metrics of several runs: a chart each, with the mean over runs, and a table. */
export function overlaySections(metrics: readonly OverlaidMetric[], runs: readonly NamedRun[]): Html {
  if (metrics.length === 0) return html`<p class="notice">These runs have no measurements yet.</p>`;
  return html`<p class="key">
      Thin lines: one run each. Thick line and band (for a single step: dot and bar): the mean over runs and its 95 % t interval, at
      steps that at least two runs measured completely. The interval is about further runs (other seeds) like these, not about
      questions. Only runs that differ in their seed are averaged.
    </p>
    ${metrics.map((metric) => metricSection(metric, runs))}`;
}

const keyOf = ({ callback, metric, unit }: OverlaidMetric): string => `${callback}/${metric}/${unit}`;

/** Returns the numbers behind the charts of an overlay, for the page's script. The mean is the last part. */
export function overlayData(metrics: readonly OverlaidMetric[], runs: readonly NamedRun[]): RunData {
  const names = runs.map(({ name }) => name);
  return {
    steps: Math.max(1, ...runs.map(({ run }) => runSteps(run))),
    parts: [...names, "mean"],
    partsAre: "run",
    phases: sharedPhases(runs),
    curves: metrics.map((metric) => ({
      key: keyOf(metric),
      callback: metric.callback,
      metric: metric.metric,
      name: humanizeName(metric.metric),
      unit: metric.unit,
      higherIsBetter: null,
      points: [
        ...metric.curves.flatMap(({ name, measurements }) =>
          measurements.map(({ runStep, value, ci95, n, baseline }) => {
            const verdict = baseline?.verdict ?? null;
            return { part: names.indexOf(name), step: runStep, runStep, value, ci95, n, verdict };
          }),
        ),
        ...metric.means.map(({ runStep, runs: n, mean: { value, ci95 } }) => {
          return { part: names.length, step: runStep, runStep, value, ci95, n, verdict: null };
        }),
      ].sort((a, b) => a.runStep - b.runStep || a.part - b.part),
    })),
  };
}

function metricSection(metric: OverlaidMetric, runs: readonly NamedRun[]): Html {
  const name = humanizeName(metric.metric);
  const title = capitalized(humanizeName(metric.callback));
  const last = metric.means.at(-1);
  return html`<section>
    <h2>${title}</h2>
    <p class="sub">
      ${capitalized(name)} in ${plural(metric.curves.length, "run")}.
      ${last !== undefined && `Mean over ${last.runs} runs at run step ${last.runStep}: ${formatValue(last.mean.value, metric.unit)}${last.mean.ci95 === null ? "" : ` ${formatInterval(last.mean.ci95, metric.unit)}`}.`}
    </p>
    ${chartPlace(keyOf(metric), "large")}
    <ul class="legend">
      ${metric.curves.map(({ name: run, measurements }) => {
        const at = runs.findIndex(({ name }) => name === run);
        const end = measurements.at(-1);
        return html`<li>
          ${lineSample(at, false)}
          ${run}: ${end === undefined ? "no value" : `${formatValue(end.value, metric.unit)} at run step ${end.runStep}`}
        </li>`;
      })}
    </ul>
    ${metric.leftOut.map(({ name: run, reason }) => html`<p class="key">Not in the mean: ${run}, because ${reason}.</p>`)}
    ${metric.means.length > 0 && meansTable(metric)}
  </section>`;
}

const meansTable = ({ means, unit }: OverlaidMetric): Html =>
  html`<details>
    <summary>Mean over runs by step <span>${plural(means.length, "step")}</span></summary>
    ${rowTable("Mean over runs by step", means, [
      ["Run step", ({ runStep }) => runStep],
      ["Runs", ({ runs }) => runs],
      ["Mean over runs", ({ mean }) => formatValue(mean.value, unit)],
      ["95 % interval over runs", ({ mean }) => formatInterval(mean.ci95, unit)],
    ])}
  </details>`;
