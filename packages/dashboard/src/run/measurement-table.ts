import type { PhaseRecord, RunRecord } from "@periodic-eval/contracts";
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
import { rowTable, type RowColumn } from "../html/table.ts";
import { verdictTag, voidTag } from "../html/verdict.ts";

/** Renders a row for each measurement with its primary metric: the numbers behind the charts. */
export const snapshotTable = (run: RunRecord): Html =>
  html`<section id="snapshots">
    <h2>All measurements</h2>
    ${rowTable("All measurements", run.phases.flatMap(rowsOf), columns, {
      rowClass: ({ phaseIndex }) => phaseAccent(phaseIndex),
      rank: ({ point }) => point.runStep,
    })}
  </section>`;

function rowsOf(phase: PhaseRecord, phaseIndex: number) {
  const answerOf = answers(phase);
  return phase.series.flatMap(({ id, primaryMetric: primary, points }) =>
    points.map((point) => {
      const metric = primary === null ? undefined : point.metrics[primary];
      return {
        phase: phase.name,
        phaseIndex,
        id,
        point,
        metric,
        unit: metric?.unit ?? "",
        reason: primary === null ? null : voidReason(point, primary),
        paired: primary === null ? null : (point.paired.baseline?.[primary] ?? null),
        answer: answerOf(id, point.step),
      };
    }),
  );
}

const columns: readonly RowColumn<ReturnType<typeof rowsOf>[number]>[] = [
  ["phase", ({ phase, id, point }) => html`<span class="phase">${phase}</span>${narrowName(id, point.step)}`],
  ["step", ({ point }) => point.step, "wide"],
  ["%", ({ point }) => (point.pct === null ? missingValueText : Math.round(point.pct))],
  ["measured", ({ id }) => humanizeName(id), "left wide"],
  ["value", ({ metric, unit }) => html`<strong>${formatValue(metric?.value, unit)}</strong>`],
  [term("95 % interval"), ({ metric, unit }) => formatInterval(metric?.ci95, unit)],
  ["n", ({ metric }) => metric?.n ?? missingValueText],
  ["change", ({ paired, unit }) => formatDelta(paired?.delta, unit)],
  [term("paired items"), ({ paired }) => paired?.n_pairs ?? missingValueText],
  [
    term("verdict"),
    ({ reason, paired }) => (reason === null ? (verdictTag(paired) ?? missingValueText) : voidTag(reason)),
    "left",
  ],
  ["time", ({ point }) => formatSeconds(point.seconds)],
  [
    term("undisturbed"),
    ({ answer, point }) =>
      answer === "no"
        ? html`<span class="verdict worse">no: ${point.receipt.broken.join(", ")}</span>`
        : answer,
    "left",
  ],
  ["status", ({ point }) => point.status, "left"],
];

/** Returns whether each measurement of a phase left training undisturbed. */
function answers(phase: PhaseRecord): (id: string, step: number) => string {
  const isElsewhere = undisturbed(phase.snapshots)?.answer === "not applicable";
  const byKey = new Map(phase.snapshots.map((snapshot) => [`${snapshot.id}/${snapshot.step}`, snapshot]));
  return (id, step) => {
    const snapshot = byKey.get(`${id}/${step}`);
    const summary = snapshot && undisturbed([snapshot]);
    const answer = summary?.measurements === 0 ? undefined : summary?.answer;
    return answer === "not proven" && isElsewhere ? "not applicable" : (answer ?? missingValueText);
  };
}

/** Renders the callback and the step below the phase on narrow screens, where the first column alone stays in view. */
export const narrowName = (id: string, step: number): Html =>
  html`<small class="narrow">${humanizeName(id)}, <span class="unbroken">step ${step}</span></small>`;
