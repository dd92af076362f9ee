import { undisturbed, whyNotUndisturbed } from "@periodic-eval/store";
import { type PhaseRecord, type RunRecord } from "@periodic-eval/contracts";
import { phaseAccent } from "../charts/draw-chart.ts";
import type { RunAnswers } from "../answers/read-answers.ts";
import { plural } from "../html/format.ts";
import { term } from "../html/glossary.ts";
import { html, type Html } from "../html/html.ts";
import { verdictStyles } from "../html/verdict.ts";
import { summarizePhases, sortVoidFirst, type MetricSummary } from "./phase-summary.ts";
import { answerLinks } from "./answer-links.ts";
import { judgementOf } from "./judgement.ts";
import { headline, summarySentence } from "./summary-sentence.ts";

/**
 * Renders one headline for each primary metric of each phase, with its test behind a click, and one on whether measuring disturbed
 * training. What cannot be judged comes first.
 *
 * @param answers The answers to which the sentences link.
 */
export function summarySection(run: RunRecord, answers: RunAnswers | null): Html | false {
  const primaries = summarizePhases(run).flatMap(({ phase, phaseIndex, metrics }) =>
    metrics.filter(({ isPrimary }) => isPrimary).map((metric) => ({ metric, phase, phaseIndex })),
  );
  const hasPhases = run.phases.length > 1;
  const items = sortVoidFirst(primaries).map(({ metric, phase, phaseIndex }) =>
    sentence(metric, { phase, phaseIndex, hasPhases, answers }),
  );
  const receipt = receiptSentence(run);
  return (
    items.length > 0 &&
    html`<ul class="sentences" aria-label="Summary">
      ${items} ${
        receipt !== null &&
        html`<li>
        <span class="mark none" aria-hidden="true">·</span> ${receipt} ${answers && html`<a class="to-answers" href="#receipts">Receipts</a>`}
      </li>`
      }
    </ul>
    ${definitionsOf(items)}`
  );
}

/** Renders the terms of the sentences, whose text is plain. */
function definitionsOf(items: readonly Html[]): Html | false {
  const text = items.map(({ markup }) => markup).join(" ");
  const used = [
    [/measurably/, term("detectable change")],
    [/ at \d[\d.]*\s%/, term("level", "tested at")],
    [/exploratory/, term("exploratory")],
  ] as const;
  const shown = used.filter(([words]) => words.test(text)).map(([, one]) => html` · ${one}`);
  return html`<p class="key terms">Definitions: ${term("measurement")} · ${term("verdict")}${shown} · ${term("receipt")}</p>`;
}

/** Keeps numbers with their units and steps on one line. */
const unbroken = (text: string): string =>
  text
    .replaceAll(/(\d) (?=%|points|nats)/g, "$1\u00a0")
    .replaceAll(/\b((?:run )?step) (?=\d)/g, (words) => words.replaceAll(" ", "\u00a0"));

interface SentencePlace {
  readonly phase: PhaseRecord;
  readonly phaseIndex: number;
  readonly hasPhases: boolean;
  readonly answers: RunAnswers | null;
}

function sentence(metric: MetricSummary, { phase, phaseIndex, hasPhases, answers }: SentencePlace): Html {
  const verdict = metric.end.value === null ? null : metric.change?.verdict;
  const { glyph, className } = verdict ? verdictStyles[verdict] : { glyph: "·", className: "none" };
  const mark = judgementOf(metric) === "void" ? { glyph: "!", className: "worse" } : { glyph, className };
  return html`<li class="${phaseAccent(phaseIndex)}">
    <span class="mark verdict ${mark.className}" aria-hidden="true">${mark.glyph}</span> ${unbroken(headline(metric, hasPhases ? phase.name : null))} ${answers && answerLinks(answers, metric, phase, hasPhases)}
    ${metric.warnings.map((message) => html`<p class="warning"><strong>Warning:</strong> ${message}</p>`)}
    <details><summary>Test</summary>${unbroken(summarySentence(metric, phase.name))}</details>
  </li>`;
}

/** `Measuring left training undisturbed: 32 of 32 measurements proven.` Null if nothing was measured. */
function receiptSentence(run: RunRecord): string | null {
  const found = undisturbed(run.phases.flatMap((phase) => phase.snapshots));
  if (found === null || found.measurements === 0) return null;
  const { answer, measurements, proven } = found;
  const count = `${proven} of ${plural(measurements, "measurement")} proven`;
  switch (answer) {
    case "yes":
      return `Measuring left training undisturbed: ${count}.`;
    case "no":
      return `Measuring disturbed training: ${whyNotUndisturbed(found)}; ${count}.`;
    case "not proven":
      return `It is not proven that measuring left training undisturbed: ${whyNotUndisturbed(found)}; ${count}.`;
    case "not applicable":
      return `The receipts do not apply to the training: ${whyNotUndisturbed(found)}.`;
  }
}
