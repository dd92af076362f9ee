import type { PhaseRecord, RunRecord, SeriesPoint } from "@periodic-eval/contracts";
import { undisturbed, voidReason } from "@periodic-eval/store";
import { phaseAccent } from "../charts/chart.ts";
import {
  formatDelta,
  formatInterval,
  formatSeconds,
  formatValue,
  missingValueText,
  humanizeName,
} from "../html/format.ts";
import { term } from "../html/glossary.ts";
import { html, type Html } from "../html/html.ts";
import { truncationNote, lastRows, type SectionOptions, table } from "../html/table.ts";
import { verdictTag, voidTag } from "../html/verdict.ts";

/** Renders a row for each measurement with its primary metric: the numbers behind the charts. */
export function snapshotTable(run: RunRecord, options: SectionOptions): Html {
  const measurements = run.phases.flatMap((phase, index) => {
    const answerOf = answers(phase);
    return phase.series.flatMap(({ id, primaryMetric, points }) =>
      points.map((point) => ({
        phase: phase.name,
        index,
        id,
        primaryMetric,
        point,
        answerOf,
      })),
    );
  });
  // The newest rows of all callbacks together; the table keeps its order.
  const newest = new Set(
    lastRows(
      measurements.toSorted((a, b) => a.point.runStep - b.point.runStep),
      options,
    ),
  );
  return html`<section id="${options.idPrefix}snapshots">
    <h2>All measurements</h2>
    ${table("All measurements", columns, measurements.filter((measurement) => newest.has(measurement)).map(row))}
    ${truncationNote(measurements.length, "measurement", options)}
  </section>`;
}

const columns = [
  "phase",
  { heading: "step", className: "wide" },
  "%",
  { heading: "measured", className: "left wide" },
  "value",
  { heading: term("95 % interval"), className: "" },
  "n",
  "change",
  { heading: term("paired items"), className: "" },
  { heading: term("verdict") },
  "time",
  { heading: term("undisturbed") },
  { heading: "status" },
];

/** Returns whether each measurement of a phase left training undisturbed. */
function answers(phase: PhaseRecord): (id: string, step: number) => string {
  const isElsewhere = undisturbed(phase.snapshots)?.answer === "not applicable";
  const byKey = new Map(phase.snapshots.map((snapshot) => [`${snapshot.id}/${snapshot.step}`, snapshot]));
  return (id, step) => {
    const snapshot = byKey.get(`${id}/${step}`);
    const found = snapshot && undisturbed([snapshot]);
    const answer = found?.measurements === 0 ? undefined : found?.answer;
    return answer === "not proven" && isElsewhere ? "not applicable" : (answer ?? missingValueText);
  };
}

interface PlacedMeasurement {
  readonly phase: string;
  readonly index: number;
  readonly id: string;
  readonly primaryMetric: string | null;
  readonly point: SeriesPoint;
  readonly answerOf: ReturnType<typeof answers>;
}

function row({ phase, index, id, primaryMetric, point, answerOf }: PlacedMeasurement): Html {
  const answer = answerOf(id, point.step);
  const metric = primaryMetric === null ? undefined : point.metrics[primaryMetric];
  const unit = metric?.unit ?? "";
  const reason = primaryMetric === null ? null : voidReason(point, primaryMetric);
  const paired = primaryMetric === null ? null : (point.paired.baseline?.[primaryMetric] ?? null);
  return html`<tr class="${phaseAccent(index)}">
    <th scope="row"><span class="phase">${phase}</span>${narrowName(id, point.step)}</th>
    <td class="wide">${point.step}</td>
    <td>${point.pct === null ? missingValueText : Math.round(point.pct)}</td>
    <td class="left wide">${humanizeName(id)}</td>
    <td><strong>${formatValue(metric?.value, unit)}</strong></td>
    <td>${formatInterval(metric?.ci95, unit)}</td>
    <td>${metric?.n ?? missingValueText}</td>
    <td>${formatDelta(paired?.delta, unit)}</td>
    <td>${paired?.n_pairs ?? missingValueText}</td>
    <td class="left">${reason === null ? (verdictTag(paired) ?? missingValueText) : voidTag(reason)}</td>
    <td>${formatSeconds(point.seconds)}</td>
    <td class="left">
      ${answer === "no" ? html`<span class="verdict worse">no: ${point.receipt.broken.join(", ")}</span>` : answer}
    </td>
    <td class="left">${point.status}</td>
  </tr>`;
}

/** Renders the callback and the step below the phase on narrow screens, where the first column alone stays in view. */
export const narrowName = (id: string, step: number): Html =>
  html`<small class="narrow">${humanizeName(id)}, <span class="unbroken">step ${step}</span></small>`;
