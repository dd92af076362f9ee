import * as Plot from "@observablehq/plot";
import { drawChart, phaseColour, valueDomain } from "../charts/draw-chart.ts";
import { capitalized, formatInterval, formatValue, humanizeName, plural, scaleOf } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { table } from "../html/table.ts";
import { summarizeOverlay, type NamedRun, type OverlaidMetric } from "./summarize-overlay.ts";

/** Steps of a table of means. */
const tableSteps = 24;
/** Position of the first run whose colour is used a second time. */
const dashedFrom = 5;

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
export function overlaySections(runs: readonly NamedRun[]): Html {
  const metrics = summarizeOverlay(runs);
  if (metrics.length === 0) return html`<p class="notice">These runs have no measurements yet.</p>`;
  return html`<p class="key">
      Thin lines: one run each. Thick line and band: the mean over runs and its 95 % t interval, at steps that at least two runs
      measured completely. The interval is about further runs (other seeds) like these, not about questions.
    </p>
    ${metrics.map(metricSection)}`;
}

function metricSection(metric: OverlaidMetric): Html {
  const name = humanizeName(metric.metric);
  const title = capitalized(humanizeName(metric.callback));
  const last = metric.means.at(-1);
  return html`<section>
    <h2>${title}</h2>
    <p class="sub">
      ${name} in ${plural(metric.curves.length, "run")}.
      ${last !== undefined && `Mean over ${last.runs} runs at run step ${last.runStep}: ${formatValue(last.mean.value, metric.unit)} ${formatInterval(last.mean.ci95, metric.unit)}.`}
    </p>
    <figure class="panel">${overlayChart(metric, `${title}, ${name}`)}</figure>
    <ul class="legend">
      ${metric.curves.map(({ name: run, measurements }, at) => {
        const end = measurements.at(-1);
        return html`<li>
          <svg width="14" height="10" aria-hidden="true"><path d="M0 5H14" stroke="${phaseColour(at)}" stroke-width="3"${at >= dashedFrom && html` stroke-dasharray="5 3"`} /></svg>
          ${run}: ${end === undefined ? "no value" : `${formatValue(end.value, metric.unit)} at run step ${end.runStep}`}
        </li>`;
      })}
    </ul>
    ${metric.means.length > 0 && meansTable(metric)}
  </section>`;
}

function overlayChart({ curves, means, unit }: OverlaidMetric, title: string): Html {
  const scale = scaleOf(unit);
  const isShare = unit === "share";
  const bounded = means.filter(({ mean }) => mean.ci95 !== null);
  const values = [
    ...curves.flatMap(({ measurements }) => measurements.map(({ value }) => value! * scale)),
    ...bounded.flatMap(({ mean }) => mean.ci95!.map((end) => end * scale)),
  ];
  const limits = isShare ? ([0, 100] as const) : ([-Infinity, Infinity] as const);
  const steps = Math.max(
    1,
    ...curves.flatMap(({ measurements }) => measurements.map(({ runStep }) => runStep)),
  );
  return drawChart(
    {
      width: 880,
      height: 320,
      marginLeft: 56,
      marginRight: 24,
      marginBottom: 40,
      x: { domain: [0, steps], label: "run step →", labelAnchor: "right", tickSize: 0 },
      y: {
        domain: valueDomain(values, { minSpan: isShare ? 24 : 1e-9, bounds: limits }),
        label: null,
        tickSize: 0,
        ticks: 5,
        tickFormat: (value: number) => (isShare ? `${value} %` : String(value)),
      },
      marks: [
        Plot.gridY({ ticks: 5, stroke: "var(--line)", strokeOpacity: 1 }),
        Plot.areaY(bounded, {
          x: "runStep",
          y1: ({ mean }) => mean.ci95![0] * scale,
          y2: ({ mean }) => mean.ci95![1] * scale,
          fill: "var(--ink)",
          fillOpacity: 0.12,
        }),
        ...curves.map(({ measurements }, at) =>
          Plot.lineY(measurements, {
            x: "runStep",
            y: ({ value }) => value! * scale,
            stroke: phaseColour(at),
            strokeWidth: 1.5,
            ...(at >= dashedFrom && { strokeDasharray: "5 3" }),
          }),
        ),
        Plot.lineY(means, {
          x: "runStep",
          y: ({ mean }) => mean.value! * scale,
          stroke: "var(--ink)",
          strokeWidth: 3,
        }),
      ],
    },
    { description: `${title}: ${plural(curves.length, "run")} over run steps, and their mean.` },
  );
}

function meansTable({ means, unit }: OverlaidMetric): Html {
  const shown = means.length <= tableSteps ? means : means.slice(-tableSteps);
  return html`<details>
    <summary>Mean over runs by step <span>${shown.length} of ${means.length}</span></summary>
    ${table(
      "Mean over runs by step",
      ["Run step", "Runs", "Mean over runs", "95 % interval over runs"],
      shown.map(
        ({ runStep, runs, mean }) =>
          html`<tr>
            <td>${runStep}</td>
            <td>${runs}</td>
            <td>${formatValue(mean.value, unit)}</td>
            <td>${formatInterval(mean.ci95, unit)}</td>
          </tr>`,
      ),
    )}
  </details>`;
}
