import type { RunRecord } from "@periodic-eval/contracts";
import { answersSection, questionsSection } from "../answers/answers-section.ts";
import type { RunAnswers } from "../answers/read-answers.ts";
import { curvesByCallback } from "../charts/metric-curves.ts";
import { html, type Html } from "../html/html.ts";
import type { SectionOptions } from "../html/section-options.ts";
import type { ScatterData } from "../page-data/run-data.ts";
import { callbackSection, callbackTitle } from "./callback-section.ts";
import { snapshotTable } from "./measurement-table.ts";
import { findingCards, findings, runHeader } from "./overview.ts";
import { phaseTables } from "./phase-table.ts";
import { problems } from "./problems-section.ts";
import { provenance } from "./provenance-section.ts";
import { receipts } from "./receipts-section.ts";
import { trainingSection } from "./training-section.ts";

/** The content of a run's page, besides its snapshots. */
export interface RunAnswersAndScores {
  /** The result of `readAnswers`; null for a page without answers. */
  readonly answers: RunAnswers | null;
  /** The scores of the answers, from `readAnswerScores`. */
  readonly scatters: readonly ScatterData[];
}

/** A part of a page, with its place in the list of contents. */
interface Section {
  readonly id: string;
  readonly title: string;
  readonly content: Html | false | null;
}

/**
 * Renders a run in full: header, contents and all sections.
 *
 * @param note The state of the run.
 */
export function wholeRun(
  run: RunRecord,
  name: string,
  note: Html | null,
  extras: RunAnswersAndScores,
  options: SectionOptions,
): Html {
  const isMeasured = run.phases.length > 0;
  const sections = sectionsOf(run, extras, options).filter(({ content }) => content);
  return html`${runHeader(run, name, note, extras.answers)} ${isMeasured && contents(sections)}
    ${findings(run, options)}
    ${!isMeasured && html`<p class="notice">This run has no snapshots yet.</p>`}
    ${sections.map(({ content }) => html`${content} `)}`;
}

/**
 * Renders a sample of a run's measurements: results, curves and the newest measurements. Leaves out whatever needs all measurements,
 * such as the step of the first evidence, receipts and problems.
 *
 * @param note The state of the run, and what the page leaves out.
 */
export function sampledRun(sample: RunRecord, name: string, note: Html, options: SectionOptions): Html {
  return html`<header>
      <p class="eyebrow">periodic-eval · training run</p>
      <h1>${name}</h1>
      ${note}
    </header>
    <section class="cards" role="group" aria-label="Results">${findingCards(sample)}</section>
    ${callbackSections(sample, [], options).map(({ content }) => content)} ${snapshotTable(sample, options)}`;
}

const callbackSections = (
  run: RunRecord,
  scatters: readonly ScatterData[],
  options: SectionOptions,
): readonly Section[] =>
  curvesByCallback(run).map((callback, at) => {
    const id = `curves-${at + 1}`;
    const scatter = scatters.find((one) => one.callback === callback.id);
    const content = callbackSection(run, callback, { ...options, id }, scatter);
    return { id, title: callbackTitle(callback), content };
  });

function sectionsOf(
  run: RunRecord,
  { answers, scatters }: RunAnswersAndScores,
  options: SectionOptions,
): readonly Section[] {
  const isMeasured = run.phases.length > 0;
  return [
    ...callbackSections(run, scatters, options),
    { id: "training", title: "Training", content: trainingSection(run) },
    { id: "answers", title: "Answers", content: answers && answersSection(answers) },
    { id: "questions", title: "Forgotten questions", content: answers && questionsSection(answers) },
    { id: "phases", title: "Start and end", content: isMeasured && phaseTables(run) },
    { id: "problems", title: "Problems", content: problems(run, options) },
    { id: "receipts", title: "Receipts", content: isMeasured && receipts(run, options) },
    { id: "snapshots", title: "All measurements", content: isMeasured && snapshotTable(run, options) },
    { id: "provenance", title: "Provenance", content: isMeasured && provenance(run) },
  ];
}

const contents = (sections: readonly Section[]): Html =>
  html`<nav class="contents" aria-label="Contents">
    ${sections.map(({ id, title }) => html`<a href="#${id}">${title}</a> `)}<a href="#glossary">Glossary</a>
  </nav>`;
