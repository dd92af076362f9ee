import { phaseAccent } from "../charts/draw-chart.ts";
import { evenly } from "../page-data/evenly.ts";
import {
  curveKey,
  groupOf,
  hasValue,
  isGroupMetric,
  type CallbackCurves,
  type MetricCurve,
} from "../charts/metric-curves.ts";
import { capitalized, formatValue, humanizeName, missingValueText } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { table } from "../html/table.ts";

/** Columns of a heat map. The charts by group show every measurement. */
const maxSteps = 24;

/**
 * Renders the groups of a callback's primary share (personas, questions) by step, as a table whose cells are coloured by their value;
 * false if it has fewer than two groups. Leakage begins with the persona that was trained to have the trait.
 */
export function heatMap({ primary, companions }: CallbackCurves): Html | false {
  if (primary?.unit !== "share") return false;
  const groups = companions.filter(({ metric }) => metric.startsWith(`${primary.metric}/`));
  if (groups.length < 2) return false;
  const source = companions.find(({ metric }) => metric === "source_rate");
  const rows = [...(source ? [source] : []), ...groups];
  const steps = evenly(
    primary.measurements.filter(({ runStep, phaseIndex }) =>
      rows.some(({ measurements }) =>
        measurements.some((one) => one.runStep === runStep && one.phaseIndex === phaseIndex && hasValue(one)),
      ),
    ),
    maxSteps,
  );
  const columns = steps.map(({ phase, phaseIndex, step }) => ({
    heading: html`<span class="phase ${phaseAccent(phaseIndex)}">${phase}</span> ${step}`,
    className: "",
  }));
  const name = `${capitalized(humanizeName(primary.metric))} by group and step`;
  // The page's script adds a download of these curves.
  const curves = JSON.stringify(rows.map(({ callback, metric }) => curveKey(callback, metric)));
  return html`<div data-heat="${name}" data-curves="${curves}">
    <h3>${name}</h3>
    ${table(
      name,
      ["group", ...columns],
      rows.map((row) => heatRow(row, steps, primary)),
      { className: "heat" },
    )}
  </div>`;
}

function heatRow(
  row: MetricCurve,
  steps: MetricCurve["measurements"],
  { higherIsBetter }: MetricCurve,
): Html {
  // The trained persona should have the trait, so its row is coloured as neither good nor bad.
  const tone =
    higherIsBetter === null || !isGroupMetric(row.metric) ? "changed" : higherIsBetter ? "better" : "worse";
  const cells = steps.map(({ runStep, phaseIndex }) => {
    const found = row.measurements.find((one) => one.runStep === runStep && one.phaseIndex === phaseIndex);
    const value = found?.value ?? null;
    return value === null
      ? html`<td>${missingValueText}</td>`
      : html`<td class="${tone}-${Math.round(10 * value)}">${formatValue(value, "share")}</td>`;
  });
  const label = isGroupMetric(row.metric) ? groupOf(row.metric) : `${humanizeName(row.metric)} (trained)`;
  return html`<tr><th scope="row">${label}</th>${cells}</tr>`;
}
