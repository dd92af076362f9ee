import { foldedAnswers } from "../answers/answers-section.ts";
import type { RunAnswers } from "../answers/read-answers.ts";
import { companionChart } from "../charts/companion-chart.ts";
import { capitalized, formatTime, plural, humanizeName } from "../html/format.ts";
import {
  feedbackHeader,
  feedbackSections,
  panelFigure,
  verdictTable,
  feedbackVerdict,
} from "../feedback/feedback-page.ts";
import { stepSection } from "../feedback/step-section.ts";
import { html, type Html, type HtmlValue } from "../html/html.ts";
import type { RunRecord } from "@periodic-eval/contracts";
import { formatMeasurement } from "../charts/measurement-text.ts";
import { findings } from "../run/overview.ts";
import { wholeRun } from "../run/run-sections.ts";
import { summarizePhases } from "../run/phase-summary.ts";
import { problems } from "../run/problems-section.ts";
import { resultsHeader, resultsSections } from "../results/results-page.ts";
import type { ScatterData } from "../page-data/run-data.ts";
import type { RunState } from "../run/run-state.ts";
import type { SectionOptions } from "../html/section-options.ts";
import { snapshotTable } from "../run/measurement-table.ts";
import { curvesByCallback } from "../charts/metric-curves.ts";
import { verdictTag, voidTag } from "../html/verdict.ts";
import { answersOfPage } from "./stored-answers.ts";
import type { ReadRun, RunContent } from "./read-run.ts";

/** A run, and the content of its page that is read for this page alone. */
export interface RunOfPage {
  readonly read: ReadRun;
  /** Null if the run has none that can be shown. */
  readonly answers: RunAnswers | null;
  readonly scatters: readonly ScatterData[];
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

/** Renders a run on a page of several runs: results, small charts, the last steps and some answers. */
export function shortSections(content: RunContent, options: SectionOptions): Html {
  switch (content.kind) {
    case "callbacks": {
      const { run, answers } = content;
      const primaries = curvesByCallback(run).flatMap(({ id, primary }) =>
        primary === null ? [] : [{ id, primary }],
      );
      return html`${findings(run, options)}
        <div class="multiples">
          ${primaries.map(
            ({ id, primary }) =>
              html`<figure class="panel">
                <figcaption>${capitalized(humanizeName(id))} <span>${humanizeName(primary.metric)}</span></figcaption>
                ${companionChart(run, primary)}
              </figure>`,
          )}
        </div>
        ${problems(run, options)} ${run.phases.length > 0 && snapshotTable(run, options)}
        ${
          answers.length > 0 &&
          html`<section>
            <h2>Answers</h2>
            <p class="sub">Answers from the last measurement of each callback in each phase.</p>
            ${foldedAnswers(answersOfPage(run, answers))}
          </section>`
        }`;
    }
    case "feedback": {
      const { run, groups } = content;
      const panels = groups.flatMap((group) => group.panels).filter(({ id }) => isKeyPanel(id));
      return html`${verdictTable(run.preferences)}
        <div class="panels">${panels.map(panelFigure)}</div>
        ${run.preferences.map((one) => stepSection(one, options))}`;
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
  { answers, scatters, ...options }: SectionOptions & Omit<RunOfPage, "read">,
): Html {
  switch (content.kind) {
    case "callbacks":
      return wholeRun(content.run, name, note, { answers, scatters }, options);
    case "feedback":
      return html`${feedbackHeader(content.run, name, note)} ${feedbackSections(content.run, content.groups, options)}`;
    case "results":
      return html`${resultsHeader(content.summary, name, note)} ${resultsSections(content.summary, content.methods)}`;
  }
}
