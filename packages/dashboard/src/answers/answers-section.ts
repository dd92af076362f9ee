import { plural } from "../html/format.ts";
import { term } from "../html/glossary.ts";
import { html, type Html } from "../html/html.ts";
import type { MeasurementAnswers } from "../page-data/answers-data.ts";
import type { RunAnswers } from "./read-answers.ts";

/** Renders the place of the answers, which the page's script shows. */
export function answersSection({ data }: RunAnswers): Html | false {
  const { measurements, command } = data;
  if (measurements.length === 0) return false;
  const left = measurements.filter(({ packed, problem }) => packed === undefined && problem === null).length;
  const isJudged = measurements.some(({ declared }) => declared.flags?.some(({ name }) => name === "anchor"));
  return html`<section id="answers">
      <h2>Answers</h2>
      ${command !== null && html`<p class="notice">To keep this file small, it leaves out the answers of ${plural(left, "measurement")}. This command shows them: <code>${command}</code></p>`}
      <div id="all-answers" data-answers data-keep>
        <p class="key">The script of this page shows the answers.</p>
      </div>
      ${isJudged && html`<p class="key">The judge’s ${term("anchor", "anchors")} are not counted as answers.</p>`}
    </section>`;
}

/** Whether two measurements can be compared question by question. */
const hasQuestions = (measurements: readonly MeasurementAnswers[]): boolean =>
  measurements.filter(({ declared }) => declared.choices !== undefined).length > 1;

/** Renders the place of the changed questions. The page's script compares any two measurements. */
export const questionsSection = ({ data: { measurements } }: RunAnswers): Html | false =>
  hasQuestions(measurements) &&
  html`<section id="questions">
    <h2>Forgotten and newly right questions</h2>
    <p class="sub">
      Forgotten: right at the first step, wrong at the second. Newly right: wrong at the first step, right at the second.
    </p>
    <div id="all-questions" data-questions data-keep>
      <p class="key">The script of this page compares two measurements.</p>
    </div>
  </section>`;

/** Style of the answers, in addition to the shared style. */
export const answersStyle = `
.answer { margin: 18px 0 0; padding: 14px 0 0; border-top: 1px solid var(--line); }
.answer .asked, h3.asked { margin: 0; color: var(--ink); font-size: 15px; font-weight: 600; overflow-wrap: anywhere; unicode-bidi: isolate; }
.about { margin: 3px 0 6px; color: var(--muted); font-size: 13.5px; overflow-wrap: anywhere; unicode-bidi: isolate; }
.answer pre, .at-step pre, .judge pre { margin: 8px 0; padding: 10px 14px; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
.choices { list-style: none; margin: 6px 0; padding: 0; font-size: 14.5px; }
.choices li { padding: 2px 8px; border-left: 3px solid transparent; overflow-wrap: anywhere; unicode-bidi: isolate; }
.choices li span { color: var(--muted); font-size: 13px; white-space: nowrap; }
.choices .right { border-color: var(--better); } .choices .wrong { border-color: var(--worse); }
.flag { display: inline-block; margin-right: 8px; padding: 0 7px; border: 1px solid currentcolor; border-radius: 999px; font-size: 12.5px; color: var(--changed); white-space: nowrap; }
.flag.forgotten { color: var(--worse); } .flag.newly { color: var(--better); }
.filters { display: flex; flex-wrap: wrap; gap: 10px 16px; align-items: end; margin: 12px 0 4px; }
.filters label { display: grid; gap: 2px; min-width: 0; max-width: min(260px, 100%); font-size: 13px; color: var(--muted); }
.filters label[hidden] { display: none; }
.filters select, .filters input { max-width: 100%; min-width: 0; min-height: 32px; padding: 3px 8px; font: inherit; font-size: 14.5px; color: var(--ink); background: var(--panel); border: 1px solid var(--muted); border-radius: 6px; }
.filters select:focus-visible, .filters input:focus-visible { outline: 2px solid var(--phase-1); outline-offset: 2px; }
.filters .marks, .filters.is-item label:nth-child(n+3) { display: none; } .filters.is-item label.marks { display: grid; max-width: min(320px, 100%); }
.found { margin: 10px 0 0; color: var(--muted); font-size: 14px; overflow-wrap: anywhere; }
[data-answers]:focus, [data-questions]:focus { outline: none; }
.turns { display: flex; flex-wrap: wrap; gap: 8px 18px; align-items: center; margin-top: 22px; color: var(--muted); }
.download-answers { margin-top: 18px; font-size: 13.5px; }
.turns:empty { display: none; }
button:disabled { opacity: .5; cursor: default; }
.judge { margin: 6px 0; padding: 0; border: 0; font-size: 13.5px; }
.label label { margin-right: 14px; } .label input { width: 9ch; font: inherit; } .label span { margin-left: 10px; }
.steps { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(240px, 100%), 1fr)); gap: 14px; margin-top: 12px; }
.at-step { margin: 0; min-width: 0; padding-top: 8px; border-top: 3px solid var(--line); } .at-step.selected { border-color: var(--ink); }
.at-step h4 { margin: 0 0 2px; font-size: 14px; overflow-wrap: anywhere; }
ins { text-decoration: underline; text-decoration-thickness: 2px; text-underline-offset: 3px; color: var(--better); }
del { color: var(--worse); }
table.changes td { min-width: 11ch; } table.changes tbody > tr > * { overflow-wrap: anywhere; vertical-align: top; }
@media print {
  .filters, .turns { display: none; }
  .all-steps { display: none; } .answer, .at-step { break-inside: avoid; }
}
`;
