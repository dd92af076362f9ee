import type { ConditionStop, PhaseRecord, RunRecord } from "@periodic-eval/contracts";
import type { Json } from "@periodic-eval/core";
import { undisturbedText } from "@periodic-eval/core/console";
import { undisturbed } from "@periodic-eval/store";
import type { RunAnswers } from "../answers/read-answers.ts";
import { phaseAccent } from "../charts/chart.ts";
import { capitalized, plural, jsonField } from "../html/format.ts";
import { term } from "../html/glossary.ts";
import { html, type Html } from "../html/html.ts";
import { verdictStyles } from "../html/verdict.ts";
import { hashOf } from "../page-data/answers-data.ts";
import {
  judgementOf,
  summarizePhases,
  sortVoidFirst,
  type MetricSummary,
  type PhaseSummary,
} from "./phase-summary.ts";
import { headline, stopText, testText } from "./summary-sentence.ts";

/**
 * Renders one headline for each primary metric of each phase, with its test behind a click, and one on whether measuring disturbed
 * training. What cannot be judged comes first.
 *
 * @param answers The answers to which the sentences link.
 */
export function summarySection(run: RunRecord, answers: RunAnswers | null): Html | false {
  const phases = summarizePhases(run);
  const primaries = phases.flatMap(({ phase, phaseIndex, metrics }) =>
    metrics.filter(({ isPrimary }) => isPrimary).map((metric) => ({ metric, phase, phaseIndex })),
  );
  const hasPhases = run.phases.length > 1;
  const items = sortVoidFirst(primaries).map(({ metric, phase, phaseIndex }) =>
    sentence(metric, { phase, phaseIndex }, hasPhases, answers),
  );
  const stops = phases.flatMap(({ phase, phaseIndex, stop }) =>
    stop === null ? [] : [stopItem(phase.name, phaseIndex, stop)],
  );
  const receipt = receiptItem(run);
  return (
    receipt !== null &&
    html`<ul class="sentences" aria-label="Summary">
      ${stops} ${items} ${receipt}
    </ul>
    ${definitionsOf([...stops, ...items])}`
  );
}

/** Renders the terms of the sentences, whose text is plain. */
function definitionsOf(items: readonly Html[]): Html | false {
  const text = items.map(({ markup }) => markup).join(" ");
  const used = [
    [/Detectable/, term("detectable change")],
    [/ at \d[\d.]*\s%/, term("level", "tested at")],
    [/exploratory/, term("exploratory")],
    [/last clean/, term("last clean step")],
  ] as const;
  const shown = used.filter(([words]) => words.test(text)).map(([, definition]) => html` · ${definition}`);
  return html`<p class="key terms">Definitions: ${term("measurement")} · ${term("verdict")}${shown} · ${term("undisturbed")} · ${term("receipt")}</p>`;
}

/** Keeps numbers with their units and steps on one line. */
const unbroken = (text: string): string =>
  text
    .replaceAll(/(\d) (?=%|points|nats)/g, "$1\u00a0")
    .replaceAll(/\b((?:run )?step) (?=\d)/g, (words) => words.replaceAll(" ", "\u00a0"));

function sentence(
  metric: MetricSummary,
  { phase, phaseIndex }: Pick<PhaseSummary, "phase" | "phaseIndex">,
  hasPhases: boolean,
  answers: RunAnswers | null,
): Html {
  const verdict = metric.end.value === null ? null : metric.change?.verdict;
  const { glyph, className } = verdict ? verdictStyles[verdict] : { glyph: "·", className: "none" };
  const mark = judgementOf(metric) === "void" ? { glyph: "!", className: "worse" } : { glyph, className };
  return html`<li class="${phaseAccent(phaseIndex)}">
    <span class="mark verdict ${mark.className}" aria-hidden="true">${mark.glyph}</span> ${unbroken(headline(metric, hasPhases ? phase.name : null))} ${answers && answerLink(answers, metric, phase, hasPhases)}
    ${metric.warnings.map((message) => html`<p class="warning"><strong>Warning:</strong> ${message}</p>`)}
    <details><summary>Test</summary>${unbroken(testText(metric))}</details>
  </li>`;
}

const stopItem = (phase: string, phaseIndex: number, stop: ConditionStop): Html =>
  html`<li class="${phaseAccent(phaseIndex)}">
    <span class="mark verdict worse" aria-hidden="true">■</span> ${unbroken(stopText(phase, stop))}
    <details><summary>Test</summary>${unbroken(stop.reason)}.</details>
  </li>`;

const answerMarks = {
  yes: ["✓", "better"],
  no: ["!", "worse"],
  "not proven": ["·", "none"],
  "not applicable": ["·", "none"],
} as const;

/** Renders whether measuring left training undisturbed, as the terminal says it, and how many measurements prove it. */
function receiptItem(run: RunRecord): Html | null {
  const summary = undisturbed(run.phases.flatMap((phase) => phase.snapshots));
  if (summary === null) return null;
  const { answer, measurements, proven, disturbed } = summary;
  const [glyph, className] = answerMarks[answer];
  const isCounted = measurements > 0 && (answer !== "not applicable" || proven > 0);
  const count = `; ${proven} of ${plural(measurements, "measurement")} proven${disturbed > 0 ? `, ${disturbed} disturbed` : ""}`;
  return html`<li>
    <span class="mark verdict ${className}" aria-hidden="true">${glyph}</span> ${capitalized(undisturbedText(summary)!)}${isCounted && count}.
    <a class="to-answers" href="#receipts">Receipts</a>
  </li>`;
}

/**
 * Renders a link from the summary of a metric: to the forgotten questions of a multiple-choice callback, or to the answers at the step
 * of the first evidence, or at the end. Without the page's script, it leads to the section.
 *
 * @param hasPhases Whether the run has several phases: a link then names its phase.
 */
function answerLink(
  { data, changes }: RunAnswers,
  { id, end, change, firstEvidence }: MetricSummary,
  { name: phase, snapshots }: PhaseRecord,
  hasPhases: boolean,
): Html | false {
  const questions = changes.find((entry) => entry.phase === phase && entry.id === id);
  if (questions !== undefined) {
    const count = (kind: string) => questions.changes.filter((question) => question.change === kind).length;
    const text = `${plural(count("forgotten"), "forgotten question")}, ${count("regained")} regained`;
    const { fromStep, toStep } = questions;
    const hash = hashOf("questions", { id, from: `${phase}:${fromStep}`, to: `${phase}:${toStep}` });
    return link("questions", hash, text);
  }
  const { step } = firstEvidence ?? end;
  const isStored = data.measurements.some(
    (entry) => entry.phase === phase && entry.id === id && entry.step === step && entry.problem === null,
  );
  if (!isStored) return false;
  const text = `${change?.verdict === "worse" ? "Worst answers" : "Answers"} at step ${step}`;
  const measured = snapshots.find((snapshot) => snapshot.id === id && snapshot.step === step);
  // The rate of leakage does not count the persona that was trained to have the trait.
  const source = measured?.evaluation === "leakage" ? jsonField(measured as unknown as Json, "source") : null;
  const persona = source === null ? "" : `!${source}`;
  const hash = hashOf("answers", { phase, id, step, persona });
  return link("answers", hash, hasPhases ? `${text} of ${phase}` : text);
}

const link = (section: string, hash: string, text: string): Html =>
  html`<a class="to-answers" href="#${section}" data-select="${hash}">${text}</a>`;
