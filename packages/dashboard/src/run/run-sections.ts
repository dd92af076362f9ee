import { grouped, type RunRecord } from "@periodic-eval/contracts";
import type { Json, Snapshot, Evidence } from "@periodic-eval/core";
import { answersSection, questionsSection } from "../answers/answers-section.ts";
import type { RunAnswers } from "../answers/read-answers.ts";
import { curveKey, curvesByCallback } from "../charts/metric-curves.ts";
import { chartPlace, lineSample } from "../charts/run-chart.ts";
import { trainingCurves } from "../charts/training-curves.ts";
import { missingValueText, humanizeName } from "../html/format.ts";
import { term } from "../html/glossary.ts";
import { html, type Html } from "../html/html.ts";
import { rowTable, type RowColumn } from "../html/table.ts";
import { callbackSection, callbackTitle } from "./callback-section.ts";
import { snapshotTable, narrowName } from "./measurement-table.ts";
import { findings, runHeader } from "./overview.ts";
import { lossAndHarms } from "./run-data.ts";
import { phaseTables } from "./phase-table.ts";
import { problems } from "./problems-section.ts";

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
 * @param answers The result of `readAnswers`; null for a page without answers.
 */
export function wholeRun(run: RunRecord, name: string, note: Html | null, answers: RunAnswers | null): Html {
  const isMeasured = run.phases.length > 0;
  const sections = sectionsOf(run, answers).filter(({ content }) => content);
  return html`${runHeader(run, name, note, answers)} ${isMeasured && contents(sections)}
    ${findings(run)}
    ${!isMeasured && html`<p class="notice">This run has no snapshots yet.</p>`}
    ${sections.map(({ content }) => html`${content} `)}`;
}

/**
 * Renders a sample of a run's measurements: results, curves and the newest measurements. Leaves out whatever needs all measurements,
 * such as the step of the first evidence, receipts and problems.
 *
 * @param note The state of the run, and what the page leaves out.
 */
export function sampledRun(sample: RunRecord, name: string, note: Html): Html {
  return html`<header>
      <p class="eyebrow">periodic-eval · training run</p>
      <h1>${name}</h1>
      ${note}
    </header>
    ${findings(sample)} ${callbackSections(sample).map(({ content }) => content)} ${snapshotTable(sample)}`;
}

const callbackSections = (run: RunRecord): readonly Section[] =>
  curvesByCallback(run).map((callback, at) => {
    const id = `curves-${at + 1}`;
    return { id, title: callbackTitle(callback), content: callbackSection(run, callback, id) };
  });

function sectionsOf(run: RunRecord, answers: RunAnswers | null): readonly Section[] {
  const isMeasured = run.phases.length > 0;
  return [
    ...callbackSections(run),
    { id: "training", title: "Training", content: trainingSection(run) },
    { id: "answers", title: "Answers", content: answers && answersSection(answers) },
    { id: "questions", title: "Forgotten questions", content: answers && questionsSection(answers) },
    { id: "phases", title: "Start and end", content: isMeasured && phaseTables(run) },
    { id: "problems", title: "Problems", content: problems(run) },
    { id: "receipts", title: "Receipts", content: isMeasured && receipts(run) },
    { id: "snapshots", title: "All measurements", content: isMeasured && snapshotTable(run) },
    { id: "provenance", title: "Provenance", content: isMeasured && provenance(run) },
  ];
}

const contents = (sections: readonly Section[]): Html =>
  html`<nav class="contents" aria-label="Contents">
    ${sections.map(({ id, title }) => html`<a href="#${id}">${title}</a> `)}<a href="#glossary">Glossary</a>
  </nav>`;

/** Renders what the trainer logged: losses, learning rate and speed; false if it logged nothing. */
function trainingSection(run: RunRecord): Html | false {
  const curves = trainingCurves(run);
  return (
    curves.length > 0 &&
    html`<section id="training">
      <h2>Training</h2>
      <p class="sub">Logged by the trainer, on the same axis of run steps as the measurements.</p>
      ${lossAndHarmsFigure(run)}
      <div class="multiples">
        ${curves.map(({ metric, name, unit }) =>
          chartPlace(
            curveKey(null, metric),
            "small",
            html`${name}${unit !== "" && html` <span>${unit}</span>`}`,
          ),
        )}
      </div>
    </section>`
  );
}

/** Renders whether the task had converged before a harm came; false for a run without a loss or without a harm. */
function lossAndHarmsFigure(run: RunRecord): Html | false {
  const curve = lossAndHarms(run);
  if (curve === null) return false;
  const { key, lines, points } = curve;
  const items = lines.map((name, part) => {
    const [first, last] = [0, -1].map((at) => points.filter((point) => point.part === part).at(at)!);
    return html`<li>${lineSample(part, part === lines.length - 1)} ${name} ${first!.measured} → ${last!.measured}</li>`;
  });
  return html`${chartPlace(key, "large", html`Loss and harms <span>each on its own scale</span>`)}
    <ul class="legend">${items}</ul>
    <p class="key">
      Thick line: the loss, from its lowest value (0 %) to its highest. Other lines: ${term("harm", "harms")}, 0 % at the first
      measurement or better.
    </p>`;
}

/** Renders everything needed to reproduce the numbers, once for each distinct provenance. */
function provenance(run: RunRecord): Html {
  const snapshots = run.phases.flatMap((phase) => phase.snapshots);
  // A measurement without a hash ended before its preparation: it has no number to reproduce.
  const groups = grouped(
    snapshots.filter(({ provenance: { hash } }) => hash !== null),
    ({ provenance: { hash } }) => hash!,
  );
  return html`<section id="provenance">
    <h2>Provenance</h2>
    <p class="sub">Values can be compared only if they have the same provenance.</p>
    ${[...groups].map(([hash, ofHash]) => group(hash, ofHash))}
  </section>`;
}

function group(hash: string, snapshots: readonly Snapshot[]): Html {
  const { id, evaluation, evaluation_version, provenance: source } = snapshots[0]!;
  const phases = [...new Set(snapshots.map(({ phase }) => phase))].join(", ");
  const rows: readonly (readonly [string, string])[] = [
    ["evaluation", `${evaluation}, version ${evaluation_version}`],
    ["items", `${source.items ?? missingValueText}, ${source.items_hash ?? missingValueText}`],
    ["tokenizer", source.tokenizer ?? missingValueText],
    ["seed", source.seed],
    ["created by", source.created_by],
    ["provenance", hash],
  ];
  return html`<details>
    <summary>${id} in ${phases} <span class="code">${hash.slice(0, 12)}</span></summary>
    <dl class="list">
      ${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd class="code">${value}</dd></div>`)}
    </dl>
    ${json("Model", source.model)} ${json("Evaluation", source.evaluation)}
  </details>`;
}

const json = (title: string, value: Json): Html | null =>
  value === null
    ? null
    : html`<h3>${title}</h3>
        <pre tabindex="0">${JSON.stringify(value, null, 2)}</pre>`;

/** Renders the evidence of each guard: what it observed before and after the measurements. */
function receipts(run: RunRecord): Html {
  const snapshots = run.phases.flatMap((phase) => phase.snapshots);
  const parts = grouped(
    snapshots.flatMap(({ receipt }) => receipt),
    ({ part }) => part,
  );
  return html`<section id="receipts">
    <h2>Receipts</h2>
    <p class="sub">
      Training pauses during a measurement. Guards observe the model and the training state before and after it. Equal
      fingerprints mean that the measurement left the observed part unchanged. The
      ${term("receipt")} of a measurement lists what they found.
    </p>
    ${
      parts.size === 0
        ? html`<p class="notice">
            No guards ran, so it is unknown whether the measurements disturbed training.
          </p>`
        : html`${rowTable("Receipts", [...parts], receiptColumns)} ${weightsDetails(snapshots)}`
    }
  </section>`;
}

const countOf = (evidence: readonly Evidence[], intact: boolean | null): number =>
  evidence.filter((finding) => finding.intact === intact).length;
const isAdvisory = (evidence: readonly Evidence[]): boolean => evidence.some(({ advisory }) => advisory);

const receiptColumns: readonly RowColumn<readonly [part: string, evidence: readonly Evidence[]]>[] = [
  ["part", ([part, evidence]) => html`${part}${isAdvisory(evidence) && html` <small>advisory</small>`}`],
  ["unchanged", ([, evidence]) => `${countOf(evidence, true)} of ${evidence.length}`],
  [
    "changed",
    ([, evidence]) => {
      const changed = countOf(evidence, false);
      const className = isAdvisory(evidence) ? "changed" : "worse";
      return changed > 0 ? html`<span class="verdict ${className}">${changed}</span>` : "0";
    },
  ],
  ["not observed", ([, evidence]) => countOf(evidence, null)],
  ["last measurement, before → after", ([, evidence]) => fingerprints(evidence.at(-1)!), "left code"],
];

function fingerprints({ before, after, note }: Evidence): Html {
  const pair =
    before !== null && before === after
      ? html`${short(before)} <span class="same">= unchanged</span>`
      : html`${short(before)} → ${short(after)}`;
  return html`${before === null && after === null ? "" : pair}${note && html` <small>${note}</small>`}`;
}

function weightsDetails(snapshots: readonly Snapshot[]): Html | null {
  const known = snapshots.filter(({ weights }) => weights !== null);
  if (known.length === 0) return null;
  return html`<details>
    <summary>Fingerprint of the weights at every measurement</summary>
    ${rowTable("Weights", known, weightsColumns)}
  </details>`;
}

const weightsColumns: readonly RowColumn<Snapshot>[] = [
  ["phase", ({ phase, id, step }) => html`${phase}${narrowName(id, step)}`],
  ["step", ({ step }) => step, "wide"],
  ["measured", ({ id }) => humanizeName(id), "left wide"],
  ["weights", ({ weights }) => weights, "left code"],
];

/** Shortens long fingerprints in the middle. The tooltip shows the full string. */
function short(text: string | null): Html {
  if (text === null) return html`${missingValueText}`;
  const cut = text.replaceAll(/\S{35,}/g, (word) => `${word.slice(0, 18)}…${word.slice(-10)}`);
  return cut === text ? html`${text}` : html`<span title="${text}">${cut}</span>`;
}
