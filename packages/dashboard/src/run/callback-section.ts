import { grouped, type RunRecord } from "@periodic-eval/contracts";
import * as z from "zod";
import { drawChart, phaseAccent, phaseColour } from "../charts/chart.ts";
import {
  hasValue,
  isGroupMetric,
  type CallbackCurves,
  type Measurement,
  type MetricCurve,
  curveKey,
  groupOf,
} from "../charts/metric-curves.ts";
import { chartPlace, frames, smallCharts, valueLine, type SmallCurve } from "../charts/run-chart.ts";
import { capitalized, formatValue, plural, humanizeName, missingValueText } from "../html/format.ts";
import { term, termIfKnown } from "../html/glossary.ts";
import { html, type Html } from "../html/html.ts";
import { table } from "../html/table.ts";
import { evenly } from "../page-data/run-data.ts";
import { baselinesOf } from "./run-data.ts";
import { secondJudgeText } from "./summary-sentence.ts";

/**
 * Renders the curves of one callback: a large chart of its primary metric and small charts of the others. The source's rate of
 * leakage has a large chart before the others' rate.
 */
export function callbackSection(run: RunRecord, callback: CallbackCurves, sectionId: string): Html {
  const { primary, companions } = callback;
  const note = primary && sameWeightsNote(run, primary);
  const reason = primary?.measurements.at(-1)?.warnings.find((warning) => warning.void)?.message ?? null;
  const source = companions.find(({ metric }) => metric === "source_rate");
  const ofAll = companions.filter((curve) => curve !== source && !isGroupMetric(curve.metric));
  const repeated = ofAll.filter((curve) => primary !== null && !isConstant(curve) && isSame(curve, primary));
  const whole = ofAll.filter((curve) => !repeated.includes(curve));
  return html`<section id="${sectionId}">
    <h2>${callbackTitle(callback)}</h2>
    ${
      primary?.measurements.some(hasValue)
        ? html`${source && [html`<p class="sub">${caption(source)}</p>`, largeFigure(source)]}
            <p class="sub">${caption(primary)}</p>
            ${largeFigure(primary)}
            <p class="key">
              Ribbon and whiskers: ${term("95 % interval")}. ${baselinesOf(run, primary).some((value) => value !== null) && html`Dotted line: ${term("baseline")}. `}The
              <a href="#snapshots">table below</a> lists every value.${note !== null && ` ${note}`}
            </p>`
        : html`<p class="sub">${
            reason ?? html`No measurement has a value. See <a href="#problems">Problems</a> for the reasons.`
          }</p>`
    }
    ${run.phases.map((phase) => {
      const text = secondJudgeText(phase, callback.id);
      return (
        text !== null &&
        html`<p class="key">${run.phases.length > 1 && `${phase.name}: `}${text} ${term("kappa", "What is κ?")}</p>`
      );
    })}
    ${smallCharts(whole.filter((curve) => !isConstant(curve)).map(smallCurve))}
    ${reliabilityDiagrams(run, callback.id)}
    ${valueLine(whole.filter(isConstant).map(smallCurve), "The same in every measurement:")}
    ${
      repeated.length > 0 &&
      html`<p class="key">
        The same as ${humanizeName(primary!.metric)} in every measurement:
        ${repeated.map(({ metric }) => humanizeName(metric)).join(", ")}.
      </p>`
    }
    ${isScored(callback) && html`<div id="${sectionId}-scores" data-scores="${callback.id}" data-keep></div>`} ${heatMap(callback)}
    ${groups(companions.filter(({ metric }) => isGroupMetric(metric)))}
  </section>`;
}

const reliability = z.object({
  ece: z.number(),
  reliability: z.array(z.object({ n: z.number(), confidence: z.number(), accuracy: z.number() })).min(1),
});

/** Renders how well confidence equals the share of right answers, at the first and at the last measurement that says so. */
function reliabilityDiagrams({ phases }: RunRecord, id: string): Html | false {
  const known = phases.flatMap(({ name, snapshots }, phaseIndex) =>
    snapshots.flatMap((snapshot) => {
      const { data } = snapshot.id === id ? reliability.safeParse(snapshot) : {};
      return data === undefined ? [] : [{ ...data, where: `${name} step ${snapshot.step}`, phaseIndex }];
    }),
  );
  const shown = known.length > 2 ? [known[0]!, known.at(-1)!] : known;
  return (
    shown.length > 0 &&
    html`<h3>${term("reliability diagram", "Reliability diagram")}: share right × confidence</h3>
      <div class="multiples">
        ${shown.map((diagram) => html`<figure class="panel"><figcaption>${diagram.where} <span>${term("ece", "ECE")} ${formatValue(diagram.ece, "")}</span></figcaption>${reliabilityDiagram(diagram)}</figure>`)}
      </div>`
  );
}

function reliabilityDiagram({
  reliability: bins,
  where,
  phaseIndex,
}: z.output<typeof reliability> & { readonly where: string; readonly phaseIndex: number }): Html {
  const colour = phaseColour(phaseIndex);
  const most = Math.max(...bins.map(({ n }) => n));
  const texts = bins.map(
    ({ n, confidence, accuracy }) =>
      `confidence ${formatValue(confidence, "share")}: ${formatValue(accuracy, "share")} of ${plural(n, "question")} right`,
  );
  return drawChart({
    frame: { ...frames.small, height: 260, top: 26 },
    description: `Reliability at ${where}: ${texts.join("; ")}.`,
    x: { to: 100, ticks: 4, label: "confidence % →" },
    y: { ticks: 4, text: (value) => `${value} %`, label: "↑ right", minSpan: 100, bounds: [0, 100] },
    series: [
      {
        colour: "var(--muted)",
        lineWidth: 1,
        dash: "4 4",
        radius: 0,
        dotsOnlySingle: true,
        points: [0, 100].map((at) => ({ x: at, y: at })),
      },
      // The area of a point shows its number of questions.
      ...bins.map(({ n, confidence, accuracy }, at) => ({
        colour,
        radius: 11 * Math.sqrt(n / most),
        reach: 12,
        points: [{ x: 100 * confidence, y: 100 * accuracy, title: texts[at]! }],
      })),
    ],
  });
}

/** Whether a judge scored the answers of a callback: only these metrics come from its two scores. */
const isScored = ({ primary, companions }: CallbackCurves): boolean =>
  ["aligned", "coherent"].every((name) => [primary, ...companions].some((curve) => curve?.metric === name));

const largeFigure = ({ callback, metric }: MetricCurve): Html =>
  chartPlace(curveKey(callback, metric), "large");

/** Returns the heading of a callback: its id, and its evaluation if that has another name. */
export function callbackTitle({ id, evaluation, on }: CallbackCurves): string {
  const name = evaluation === id ? "" : ` (${humanizeName(evaluation)})`;
  return `${capitalized(humanizeName(id))}${name}${on === "base" ? " without the adapter" : ""}`;
}

/** Whether a curve is a flat line: its chart would show nothing. */
function isConstant({ measurements }: MetricCurve): boolean {
  const values = measurements.filter(hasValue).map(({ value }) => value);
  return values.length > 1 && values.every((value) => value === values[0]);
}

/** Whether two curves of a callback have the same values, as an upper bound has if no answer is ungraded. */
const isSame = (curve: MetricCurve, other: MetricCurve): boolean =>
  curve.unit === other.unit &&
  curve.measurements.every(({ value }, at) => value === other.measurements[at]!.value);

const smallCurve = (curve: MetricCurve): SmallCurve => ({
  key: curveKey(curve.callback, curve.metric),
  name: termIfKnown(humanizeName(curve.metric)),
  about: smallCaption(curve),
  points: curve.measurements.filter(hasValue),
  text: (value) => formatValue(value, curve.unit),
});

/** Renders the metrics of single personas or questions, folded because there are many. */
function groups(curves: readonly MetricCurve[]): readonly Html[] {
  const byMetric = grouped(curves, ({ metric }) => metric.slice(0, metric.indexOf("/")));
  return [...byMetric].map(
    ([metric, ofMetric]) =>
      html`<details class="groups">
        <summary>${capitalized(humanizeName(metric))}, by group <span>${plural(ofMetric.length, "group")}</span></summary>
        ${smallCharts(ofMetric.map(smallCurve))}
      </details>`,
  );
}

const direction = ({ higherIsBetter }: MetricCurve): string | null =>
  higherIsBetter === null ? null : higherIsBetter ? "higher is better" : "lower is better";

function caption(curve: MetricCurve): Html {
  const counts = [...new Set(curve.measurements.filter(hasValue).flatMap(({ n }) => n ?? []))];
  const [min, max] = [Math.min(...counts), Math.max(...counts)];
  const observed = min === max ? plural(max, "observation") : `${min} to ${plural(max, "observation")}`;
  const estimand = curve.estimand === "over_questions" ? "for questions like these" : "for these questions";
  const name = humanizeName(curve.metric);
  const way = direction(curve);
  return html`${termIfKnown(name, capitalized(name))} · ${observed} per measurement · intervals ${term(estimand)}${way !== null && ` · ${way}`}`;
}

const smallCaption = (curve: MetricCurve): string =>
  [curve.unit === "share" ? "percent" : curve.unit, direction(curve)]
    .filter((part) => part !== null && part !== "")
    .join(", ");

/**
 * Returns a sentence if two phases show different values of the same weights and questions: at the end of one, and at the start of the
 * next. Null if none do. A reader would otherwise look for what changed between the phases.
 */
export function sameWeightsNote(
  { phases }: RunRecord,
  { callback, measurements }: MetricCurve,
): string | null {
  const pairs = phases.slice(1).flatMap((next, index) => {
    const [end, start] = [
      measurements.findLast(({ phaseIndex }) => phaseIndex === index),
      measurements.find(({ phaseIndex }) => phaseIndex === index + 1),
    ];
    if (!end?.isAtEnd || !start?.isAtStart || end.value === null || start.value === null) return [];
    const [before, after] = [end, start].map(({ phaseIndex, step }) =>
      phases[phaseIndex]!.snapshots.find((snapshot) => snapshot.id === callback && snapshot.step === step),
    );
    const isSame =
      before?.weights != null &&
      before.weights === after?.weights &&
      before.provenance.hash === after.provenance.hash;
    return isSame && end.value !== start.value ? [`${phases[index]!.name} and ${next.name}`] : [];
  });
  if (pairs.length === 0) return null;
  const where = pairs.map((pair) => `between ${pair}`).join(", ");
  return `The weights are the same at both measurements ${where}. Their answers were sampled twice, so the values differ by chance.`;
}

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
    primary.measurements.filter((step) =>
      rows.some(({ measurements }) =>
        measurements.some((point) => isSameStep(point, step) && hasValue(point)),
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

const isSameStep = (a: Measurement, b: Measurement) =>
  a.runStep === b.runStep && a.phaseIndex === b.phaseIndex;

function heatRow(
  row: MetricCurve,
  steps: MetricCurve["measurements"],
  { higherIsBetter }: MetricCurve,
): Html {
  // The trained persona should have the trait, so its row is coloured as neither good nor bad.
  const tone =
    higherIsBetter === null || !isGroupMetric(row.metric) ? "changed" : higherIsBetter ? "better" : "worse";
  const cells = steps.map((step) => {
    const value = row.measurements.find((point) => isSameStep(point, step))?.value ?? null;
    return value === null
      ? html`<td>${missingValueText}</td>`
      : html`<td class="${tone}-${Math.round(10 * value)}">${formatValue(value, "share")}</td>`;
  });
  const label = isGroupMetric(row.metric) ? groupOf(row.metric) : `${humanizeName(row.metric)} (trained)`;
  return html`<tr><th scope="row">${label}</th>${cells}</tr>`;
}
