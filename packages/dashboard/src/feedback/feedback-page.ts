import { basename, resolve } from "node:path";
import { phaseAccent } from "../charts/draw-chart.ts";
import { htmlDocument } from "../html/document.ts";
import { formatDelta, formatP, formatTime, formatValue, plural, humanizeName } from "../html/format.ts";
import { factList } from "../html/fact-list.ts";
import { html, type Html } from "../html/html.ts";
import { jsonField } from "../html/json-field.ts";
import { allRows, type SectionOptions } from "../html/section-options.ts";
import { table } from "../html/table.ts";
import { feedbackStyle } from "./feedback-style.ts";
import { missingFrom, panelChart } from "./panel-chart.ts";
import type { Panel, PanelGroup } from "./panels.ts";
import type { FeedbackPreference, FeedbackRun } from "./read-feedback.ts";
import { stepSection } from "./step-section.ts";

/** One self-contained HTML file that makes no request: verdicts, drawings, every step, answers. */
export function renderFeedback(run: FeedbackRun, groups: readonly PanelGroup[]): string {
  const { output, preferences } = run;
  const name = basename(resolve(output));
  return htmlDocument({
    title: name,
    ownStyle: feedbackStyle,
    main: html`${feedbackHeader(run, name, unfinishedNote(run))} ${feedbackSections(run, groups, allRows)}`,
    source: html`Made by periodic-eval from ${plural(preferences.length, "preference")} in
      <span class="code">${output}</span>.`,
  });
}

/** What a page shows of training on feedback below its header: verdicts, drawings, steps and answers. */
export const feedbackSections = (
  run: FeedbackRun,
  groups: readonly PanelGroup[],
  options: SectionOptions,
): Html =>
  html`${verdictTable(run.preferences)} ${groups.map(groupSection)}
  ${run.preferences.map((one) => stepSection(one, options))}`;

const unfinishedNote = ({ preferences }: FeedbackRun): Html | null =>
  preferences.some((one) => one.summary.status !== "finished")
    ? html`<p class="notice">Not finished: this is how far it had come.</p>`
    : null;

/** What was trained, how, and when. */
export function feedbackHeader({ summary, preferences }: FeedbackRun, name: string, note: Html | null): Html {
  const [first] = preferences;
  return html`<header>
    <p class="eyebrow">periodic-eval · training on feedback</p>
    <h1>${name}</h1>
    ${preferences.length === 0 && html`<p class="notice">No preference was begun yet.</p>`}
    ${note}
    ${factList([
      ...(first === undefined ? [] : factsOf(first)),
      ["Written", formatTime(summary.updated_at)] as const,
    ])}
  </header>`;
}

function factsOf({ metadata: { config, engine, started_at: started } }: FeedbackPreference) {
  return [
    ["Model", jsonField(engine, "model") ?? config.base_model ?? "the default"],
    ["Engine", jsonField(engine, "engine") ?? "not told"],
    ["Steps a preference", String(config.num_steps)],
    ["A step", `${plural(config.batch_size, "answer")}, ${plural(config.steps_per_batch, "gradient step")}`],
    ["Learning rate", String(config.training.learning_rate)],
    ["Seed", String(config.seed)],
    ["Begun", formatTime(started)],
  ] as const;
}

const verdictLooks: Readonly<Record<string, string>> = {
  learned: "better",
  collapsed: "worse",
  "lost ability": "worse",
  worse: "worse",
};

export function verdictWord(verdict: string): Html {
  const measurement = Object.hasOwn(verdictLooks, verdict) ? verdictLooks[verdict] : "none";
  return html`<span class="verdict ${measurement}">${verdict}</span>`;
}

/** What came of each preference, in numbers. */
export function verdictTable(preferences: readonly FeedbackPreference[]): Html {
  const rows = preferences.map(({ name, summary: one, baseline }, at) => {
    const ability =
      one.capability_ratio === null && baseline.general?.general === 0
        ? "not measured: the baseline's is 0"
        : null;
    return html`<tr>
      <th scope="row"><span class="dot ${phaseAccent(at)}" aria-hidden="true">●</span> ${name}</th>
      <td class="words">${verdictWord(one.verdict)}</td>
      <td>${formatDelta(one.logprob_margin_delta, "nats")}</td>
      <td>${formatDelta(one.logprob_margin_per_token_delta, "nats")}</td>
      <td>${formatP(one.logprob_margin_p).replace(/^p (= )?/, "")}</td>
      <td>${formatValue(one.baseline_compliance, "share")} → ${formatValue(one.final_compliance, "share")}</td>
      <td>${ability === null ? formatValue(one.capability_ratio, "") : html`<small>${ability}</small>`}</td>
      <td class="words">${one.collapse_alerts.map(humanizeName).join(", ") || "none"}</td>
      <td>${one.steps}${one.status !== "finished" && html` <small>${one.status}</small>`}</td>
    </tr>`;
  });
  const columns = [
    { words: "preference" },
    { words: "verdict" },
    "margin",
    "by token",
    "p",
    "held-out compliance",
    "ability",
    { words: "alerts" },
    "steps",
  ];
  return html`<section>
    <h2>Verdicts</h2>
    <p class="sub">
      Margin: its change on held-out pairs from the baseline, and p of the last measurement. Ability: what is left of the
      baseline's. – is: not measured, or not known.
    </p>
    ${table("Verdicts", columns, rows)}
  </section>`;
}

const groupSection = ({ title, about, panels }: PanelGroup): Html =>
  html`<section>
    <h2>${title}</h2>
    <p class="sub">${about}</p>
    <div class="panels">${panels.map(panelFigure)}</div>
  </section>`;

/** A drawing with the names of its lines, and what is missing from it. */
export function panelFigure(panel: Panel): Html {
  const { title, unit, series } = panel;
  return html`<figure class="panel">
    <figcaption>${title}${unit !== "" && html` <span>${unit === "share" ? "%" : unit}</span>`}</figcaption>
    <ul class="names">
      ${series.map(
        ({ name, colour, isDashed }) =>
          html`<li><span class="dot ${phaseAccent(colour)}" aria-hidden="true">${isDashed ? "○" : "●"}</span> ${name}</li>`,
      )}
    </ul>
    ${panelChart(panel)} ${missingFrom(panel).map((note) => html`<p class="missing">${note}</p>`)}
  </figure>`;
}
