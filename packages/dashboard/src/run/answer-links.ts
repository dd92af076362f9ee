import type { Json } from "@periodic-eval/core";
import type { PhaseRecord } from "@periodic-eval/contracts";
import type { RunAnswers } from "../answers/read-answers.ts";
import { plural } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { jsonField } from "../html/json-field.ts";
import { hashOf } from "../page-data/hash.ts";
import type { MetricSummary } from "./phase-summary.ts";

/**
 * Renders links from the summary of a metric to its questions and answers: the forgotten questions of a multiple-choice callback, and
 * the answers at the step of the first evidence, or at the end. Without the page's script, they lead to the section.
 *
 * @param hasPhases Whether the run has several phases: a link then names its phase.
 */
export function answerLinks(
  answers: RunAnswers,
  summary: MetricSummary,
  phase: PhaseRecord,
  hasPhases: boolean,
): readonly Html[] {
  const name = hasPhases ? ` of ${phase.name}` : "";
  return [...questionLinks(answers, summary, phase.name), ...stepLinks(answers, summary, phase, name)];
}

function questionLinks({ changes }: RunAnswers, { id }: MetricSummary, phase: string): readonly Html[] {
  const found = changes.find((one) => one.phase === phase && one.id === id);
  if (found === undefined) return [];
  const count = (kind: string) => found.changes.filter(({ change }) => change === kind).length;
  const text = `${plural(count("forgotten"), "forgotten question")}, ${count("regained")} regained`;
  const from = `${phase}:${found.fromStep}`;
  const to = `${phase}:${found.toStep}`;
  return [link("questions", hashOf("questions", { id, from, to }), text)];
}

function stepLinks(
  { data, changes }: RunAnswers,
  { id, end, change, firstEvidence }: MetricSummary,
  { name: phase, snapshots }: PhaseRecord,
  where: string,
): readonly Html[] {
  const { step } = firstEvidence ?? end;
  const isStored = data.measurements.some(
    (one) => one.phase === phase && one.id === id && one.step === step && one.problem === null,
  );
  if (!isStored || changes.some((one) => one.phase === phase && one.id === id)) return [];
  const text = `${change?.verdict === "worse" ? "Worst answers" : "Answers"} at step ${step}${where}`;
  const measured = snapshots.find((one) => one.id === id && one.step === step);
  // The rate of leakage does not count the persona that was trained to have the trait.
  const source = measured?.evaluation === "leakage" ? jsonField(measured as unknown as Json, "source") : null;
  const persona = source === null ? "" : `!${source}`;
  return [link("answers", hashOf("answers", { phase, id, step, persona }), text)];
}

const link = (section: string, hash: string, text: string): Html =>
  html`<a class="to-answers" href="#${section}" data-select="${hash}">${text}</a>`;
