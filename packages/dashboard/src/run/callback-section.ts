import type { RunRecord } from "@periodic-eval/contracts";
import type { ScatterData } from "../page-data/run-data.ts";
import { companionChart } from "../charts/companion-chart.ts";
import { capitalized, formatValue, plural, humanizeName } from "../html/format.ts";
import { term, termIfKnown } from "../html/glossary.ts";
import { html, type Html } from "../html/html.ts";
import { hasBaseline, primaryChart } from "../charts/primary-chart.ts";
import { sameWeightsNote } from "./same-weights.ts";
import { scatterSection } from "./scatter-section.ts";
import { heatMap } from "./heat-map.ts";
import type { SectionOptions } from "../html/section-options.ts";
import { hasValue, isGroupMetric, type CallbackCurves, type MetricCurve } from "../charts/metric-curves.ts";

const wide = { width: 1000, height: 380, isNarrow: false };
const narrow = { width: 360, height: 300, isNarrow: true };

/**
 * Renders the curves of one callback: a large chart of its primary metric and small charts of the others. The source's rate of
 * leakage has a large chart before the others' rate.
 */
export function callbackSection(
  run: RunRecord,
  callback: CallbackCurves,
  { id: sectionId, idPrefix }: SectionOptions & { readonly id: string },
  scatter: ScatterData | undefined,
): Html {
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
        ? html`${source && [html`<p class="sub">${caption(source)}</p>`, largeFigure(run, source)]}
            <p class="sub">${caption(primary)}</p>
            ${largeFigure(run, primary)}
            <p class="key">
              Ribbon and whiskers: ${term("95 % interval")}. ${hasBaseline(run, primary) && html`Dotted line: ${term("baseline")}. `}The
              <a href="#${idPrefix}snapshots">table below</a> lists every value.${note !== null && ` ${note}`}
            </p>`
        : html`<p class="sub">${
            reason ??
            html`No measurement has a value. See <a href="#${idPrefix}problems">Problems</a> for the reasons.`
          }</p>`
    }
    ${smallCharts(
      run,
      whole.filter((curve) => !isConstant(curve)),
    )}
    ${constants(whole.filter(isConstant))}
    ${
      repeated.length > 0 &&
      html`<p class="key">
        The same as ${humanizeName(primary!.metric)} in every measurement:
        ${repeated.map(({ metric }) => humanizeName(metric)).join(", ")}.
      </p>`
    }
    ${scatter !== undefined && scatterSection(run, scatter)} ${heatMap(callback)}
    ${groups(
      run,
      companions.filter(({ metric }) => isGroupMetric(metric)),
    )}
  </section>`;
}

const largeFigure = (run: RunRecord, curve: MetricCurve): Html =>
  html`<figure class="panel">
    <div class="wide">${primaryChart(run, curve, wide)}</div>
    <div class="narrow">${primaryChart(run, curve, narrow)}</div>
  </figure>`;

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

/** Names the metrics whose charts are left out, with their value. */
function constants(curves: readonly MetricCurve[]): Html | false {
  return (
    curves.length > 0 &&
    html`<p class="key">
      The same in every measurement:
      ${curves.map(({ metric, unit, measurements }, at) => {
        const value = measurements.find(hasValue)!.value;
        return html`${at > 0 && ", "}${termIfKnown(humanizeName(metric))} <span class="unbroken">${formatValue(value, unit)}</span>`;
      })}.
    </p>`
  );
}

function smallCharts(run: RunRecord, curves: readonly MetricCurve[]): Html | false {
  return (
    curves.length > 0 &&
    html`<div class="multiples">
      ${curves.map(
        (curve) =>
          html`<figure class="panel">
            <figcaption>${termIfKnown(humanizeName(curve.metric))} <span>${smallCaption(curve)}</span></figcaption>
            ${companionChart(run, curve)}
          </figure>`,
      )}
    </div>`
  );
}

/** Renders the metrics of single personas or questions, folded because there are many. */
function groups(run: RunRecord, curves: readonly MetricCurve[]): readonly Html[] {
  const metrics = [...new Set(curves.map(({ metric }) => metric.slice(0, metric.indexOf("/"))))];
  return metrics.map((metric) => {
    const ofMetric = curves.filter((curve) => curve.metric.startsWith(`${metric}/`));
    return html`<details class="groups">
      <summary>${capitalized(humanizeName(metric))}, by group <span>${plural(ofMetric.length, "curve")}</span></summary>
      ${smallCharts(run, ofMetric)}
    </details>`;
  });
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
