import type { RunRecord } from "@periodic-eval/contracts";
import type { RunAnswers } from "../answers/read-answers.ts";
import { formatMeasurement, curvesByCallback } from "../charts/metric-curves.ts";
import { runChart } from "../charts/run-chart.ts";
import {
  feedbackHeader,
  feedbackSections,
  panelFigure,
  verdictTable,
  feedbackVerdict,
} from "../feedback/feedback-page.ts";
import { stepSection } from "../feedback/step-section.ts";
import { capitalized, formatTime, plural, humanizeName } from "../html/format.ts";
import { html, type Html, type HtmlValue } from "../html/html.ts";
import { verdictTag, voidTag } from "../html/verdict.ts";
import { resultsHeader, resultsSections } from "../results/results-page.ts";
import { snapshotTable } from "../run/measurement-table.ts";
import { findings } from "../run/overview.ts";
import { summarizePhases } from "../run/phase-summary.ts";
import { curveData, runData } from "../run/run-data.ts";
import { problems } from "../run/problems-section.ts";
import { wholeRun } from "../run/run-sections.ts";
import type { RunState } from "../run/run-state.ts";
import type { ReadRun, RunContent } from "./read-run.ts";

/** A run, and the content of its page that is read for this page alone. */
export interface RunOfPage {
  readonly read: ReadRun;
  /** Null if the run has none that can be shown. */
  readonly answers: RunAnswers | null;
}

/** Each state has a glyph as well as a colour. */
const stateGlyphs: Readonly<Record<RunState["state"], string>> = {
  running: "●",
  finished: "✓",
  interrupted: "■",
  unknown: "?",
};

export const stateTag = ({ state }: RunState): Html =>
  html`<span class="state ${state}"><span aria-hidden="true">${stateGlyphs[state]}</span> ${state}</span>`;

/** Renders the state of a run, its explanation and when the run was last written. */
export function stateNote({ state, found }: Pick<ReadRun, "found" | "state">): Html {
  const when = formatTime(found.writtenAt.toISOString());
  return html`<p class="notice ${state.state}">
    ${stateTag(state)} ${state.explanation} <span class="unbroken">Last written ${when}.</span>
  </p>`;
}

export function summaryLine(content: RunContent): HtmlValue {
  switch (content.kind) {
    case "callbacks":
      return measuredLine(content.run);
    case "feedback": {
      const { preferences } = content.run;
      if (preferences.length === 0) return "nothing measured";
      return preferences.map(
        ({ name, summary }) =>
          html`<span class="unbroken">${name} ${feedbackVerdict(summary.verdict)}</span> `,
      );
    }
    case "results": {
      const { runs, tasks } = content.summary;
      return `${plural(runs.length, "model")}, ${plural(tasks.length, "task")}`;
    }
  }
}

/** Renders the primary metrics at the start and at the end of a run's last phase. */
export function measuredLine(run: RunRecord): HtmlValue {
  const last = summarizePhases(run).at(-1);
  const primary = last?.metrics.filter(({ isPrimary }) => isPrimary) ?? [];
  if (last === undefined || primary.length === 0) return "nothing measured";
  return primary.map(
    ({ id, unit, start, end, isSingle, change, voidReason }) =>
      html`<span class="unbroken">${last.phase.name} ${humanizeName(id)} ${!isSingle && `${formatMeasurement(start, unit)} → `}${formatMeasurement(end, unit)}
        ${voidReason === null ? verdictTag(change) : voidTag(voidReason)}</span>`,
  );
}

/**
 * Renders a run on a page of several runs: results, small charts and measurements or steps.
 *
 * @param page Address of the run's page.
 * @param prefix Prefix of the ids of its sections.
 */
export function shortSections(content: RunContent, page: string, prefix: string): Html {
  switch (content.kind) {
    case "callbacks": {
      const { run } = content;
      const data = { ...runData(run), curves: [] };
      const primaries = curvesByCallback(run).flatMap(({ primary }) => primary ?? []);
      return html`${findings(run, page)}
        <div class="multiples">
          ${primaries.map(
            (primary) =>
              html`<figure class="panel">
                <figcaption>${capitalized(humanizeName(primary.callback))} <span>${humanizeName(primary.metric)}</span></figcaption>
                ${runChart(data, curveData(run, primary), "small")}
              </figure>`,
          )}
        </div>
        ${problems(run, prefix)} ${run.phases.length > 0 && snapshotTable(run, prefix)}`;
    }
    case "feedback": {
      const panels = content.groups.flatMap((group) => group.panels).filter(({ id }) => isKeyPanel(id));
      return html`${verdictTable(content.run.preferences)}
        <div class="panels">${panels.map(panelFigure)}</div>
        ${content.run.preferences.map(stepSection)}`;
    }
    case "results":
      return resultsSections(content.summary, content.methods);
  }
}

/** The charts that show whether a model learns and whether it collapses. */
const keyPanels = ["margin_delta", "entropy_ratio", "self_rouge_l", "own_drift", "baseline_drift"];
const isKeyPanel = (id: string): boolean => keyPanels.includes(id) || id.startsWith("compliance-");

/** Renders a run on its page. */
export function wholeSections(
  content: RunContent,
  name: string,
  note: Html,
  answers: RunAnswers | null,
): Html {
  switch (content.kind) {
    case "callbacks":
      return wholeRun(content.run, name, note, answers);
    case "feedback":
      return html`${feedbackHeader(content.run, name, note)} ${feedbackSections(content.run, content.groups)}`;
    case "results":
      return html`${resultsHeader(content.summary, name, note)} ${resultsSections(content.summary, content.methods)}`;
  }
}

/** Style of the server's pages, in addition to the shared style. */
export const serverStyle = `
.breadcrumbs { margin: 0 0 10px; color: var(--muted); font-size: 14px; overflow-wrap: anywhere; }
.runs { margin-top: 8px; border-bottom: 1px solid var(--line); }
details.entry { margin: 0; padding: 0; border-top: 1px solid var(--line); }
details.entry > summary { display: grid; grid-template-columns: 14px minmax(0, 1fr) 104px 172px; gap: 2px 14px; align-items: baseline; padding: 14px 0; list-style: none; }
details.entry > summary::-webkit-details-marker { display: none; }
details.entry > summary::before { content: "›"; color: var(--muted); font: 600 20px/1 var(--serif); }
details.entry[open] > summary::before { transform: rotate(90deg); transform-origin: 35% 60%; }
.run { display: grid; } .run > * { grid-area: 1 / 1; min-width: 0; } .run > a { z-index: 1; place-self: start; margin: 14px 304px 0 28px; text-decoration: none; }
.run > a:hover { text-decoration: underline; text-underline-offset: 3px; text-decoration-color: var(--muted); } summary .title { visibility: hidden; }
details.entry[open] { padding-bottom: 40px; }
details.entry section { margin-top: 36px; }
details.entry .panels, details.entry .multiples { margin-top: 28px; }
details.entry section > h2 { font-size: 21px; }
summary .title, .run > .title { color: var(--ink); font: 600 18px/1.3 var(--serif); overflow-wrap: anywhere; }
summary time, summary .summary-line, .kind { color: var(--muted); font-size: 13.5px; }
summary time { text-align: right; white-space: nowrap; }
summary .summary-line { grid-column: 2 / -1; display: flex; flex-wrap: wrap; gap: 0 18px; }
summary .summary-line small { display: none; }
.state span { color: inherit; }
summary .summary-line .verdict.better { color: var(--better); } summary .summary-line .verdict.worse { color: var(--worse); }
summary .summary-line .verdict.changed { color: var(--changed); }
.kind, .compare { margin: 0 0 10px; } .compare { font-size: 13.5px; }
.state { color: var(--muted); font-size: 14px; font-weight: 600; white-space: nowrap; }
summary .state.running, .state.running { color: var(--phase-1); } .notice.damaged { border-color: var(--worse); }
summary .state.finished, .state.finished { color: var(--better); } summary .state.interrupted, .state.interrupted { color: var(--changed); }
.notice.running { border-color: var(--phase-1); } .notice.interrupted { border-color: var(--changed); }
.notice.finished { border-color: var(--better); } .notice.unknown { border-color: var(--muted); }
.notice { overflow-wrap: anywhere; }
.pagination { display: flex; justify-content: center; gap: 24px; margin-top: 28px; color: var(--muted); }
.lost { position: fixed; inset: auto 0 0; z-index: 3; margin: 0; padding: 10px 32px; background: var(--panel); border-top: 3px solid var(--changed); }
@media print { .lost { position: static; } }
.selection { list-style: none; margin: 8px 0; padding: 0; columns: 280px; } .selection a { text-decoration: none; overflow-wrap: anywhere; }
.legend { list-style: none; margin: 8px 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: 14px; overflow-wrap: anywhere; }
@media (max-width: 640px) {
  details.entry > summary { grid-template-columns: 14px minmax(0, 1fr) auto; } .run > a { margin-right: 110px; }
  summary time { grid-column: 2; grid-row: 2; text-align: left; }
  summary .summary-line { grid-column: 2 / -1; }
}
`;
