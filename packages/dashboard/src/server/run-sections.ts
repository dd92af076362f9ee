import type { RunRecord } from "@periodic-eval/contracts";
import type { RunAnswers } from "../answers/read-answers.ts";
import { formatMeasurement } from "../charts/metric-curves.ts";
import { feedbackHeader, feedbackSections, feedbackVerdict } from "../feedback/feedback-page.ts";
import { formatTime, plural, humanizeName } from "../html/format.ts";
import { html, type Html, type HtmlValue } from "../html/html.ts";
import { verdictTag, voidTag } from "../html/verdict.ts";
import { resultsHeader, resultsSections } from "../results/results-page.ts";
import { summarizePhases } from "../run/phase-summary.ts";
import { problemNames } from "../run/problems-section.ts";
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

/** Renders the results of a run in a line; the problem of a run that cannot be read. */
export function summaryLine({ content, problem }: ReadRun): HtmlValue {
  switch (content?.kind) {
    case undefined:
      return html`<span class="verdict worse">unreadable</span> ${problem}`;
    case "callbacks": {
      const kinds = new Set(content.run.problems.map(({ kind }) => problemNames[kind]));
      return html`${measuredLine(content.run)} ${kinds.size > 0 && html`<span class="verdict worse">${[...kinds].join(", ")}</span>`}`;
    }
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
.runs > .run { display: grid; grid-template-columns: minmax(0, 1fr) auto 172px; gap: 2px 14px; align-items: baseline; padding: 14px 0; border-top: 1px solid var(--line); }
.runs > .run .title { font: 600 18px/1.3 var(--serif); overflow-wrap: anywhere; text-decoration: none; } .runs > .run .title:hover { text-decoration: underline; }
.runs > .run time, .run p { color: var(--muted); font-size: 13.5px; } .runs > .run time { text-align: right; white-space: nowrap; }
.run p { grid-column: 1 / -1; margin: 0; overflow-wrap: anywhere; } .summary-line { display: flex; flex-wrap: wrap; gap: 0 18px; } .summary-line small { display: none; }
.state { color: var(--muted); font-size: 14px; font-weight: 600; white-space: nowrap; }
.state.running { color: var(--phase-1); } .notice.damaged { border-color: var(--worse); }
.state.finished { color: var(--better); } .state.interrupted { color: var(--changed); }
.notice.running { border-color: var(--phase-1); } .notice.interrupted { border-color: var(--changed); }
.notice.finished { border-color: var(--better); } .notice.unknown { border-color: var(--muted); }
.notice { overflow-wrap: anywhere; }
.pagination { display: flex; justify-content: center; gap: 24px; margin-top: 28px; color: var(--muted); }
.lost { position: fixed; inset: auto 0 0; z-index: 3; margin: 0; padding: 10px 32px; background: var(--panel); border-top: 3px solid var(--changed); }
@media print { .lost { position: static; } }
.selection { list-style: none; margin: 8px 0; padding: 0; columns: 280px; } .selection a { text-decoration: none; overflow-wrap: anywhere; }
@media (max-width: 640px) { .runs > .run { grid-template-columns: minmax(0, 1fr) auto; } .runs > .run time { grid-column: 1 / -1; text-align: left; } }
`;
