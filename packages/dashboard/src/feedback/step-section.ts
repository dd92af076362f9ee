import {
  formatDelta,
  formatP,
  formatSeconds,
  formatValue,
  missingValueText,
  humanizeName,
} from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { table } from "../html/table.ts";
import { failuresOf } from "./panels.ts";
import type { FeedbackMeasurement, FeedbackStep, FeedbackPreference } from "./read-feedback.ts";

/** Renders one preference: a row for each step, and the model's answers. */
export function stepSection(preference: FeedbackPreference): Html {
  const { name, metadata, baseline, steps } = preference;
  return html`<section>
    <h2>${name}</h2>
    <p class="sub">
      Feedback: “${metadata.preference_definition.feedback_string}”. Grader:
      <span class="code">${metadata.grader.name}</span>.
    </p>
    ${table(`Steps of ${name}`, columns, [
      measurementRow("baseline", baseline, null),
      ...steps.map((line) => measurementRow(`step ${line.step}`, line.eval, line)),
    ])}
    <p class="key">
      Steps are 0-based. A dash (–) means that the step did not measure the value${
        metadata.config.metrics.includes("collapse") &&
        html`; collapse is measured after steps
        ${metadata.config.collapse_steps.filter((at) => at < metadata.config.num_steps).join(", ") || "none"}`
      }. Hover over a dash for the reason, if it is known.
    </p>
    ${
      unknownNotes(preference).length > 0 &&
      html`<p class="key">Not known:</p>
        <ul class="key">${unknownNotes(preference).map((note) => html`<li>${note}</li>`)}</ul>`
    }
    <details>
      <summary>Training answers <span>the first of each batch</span></summary>
      ${steps.map(({ step, prompt_used: prompt, response_text: response, eval: { rollouts } }) =>
        answer(
          `step ${step}`,
          prompt,
          response,
          rollouts.find((rollout) => rollout.of === "training")?.score ?? null,
        ),
      )}
    </details>
    ${heldOutAnswers("before any update", baseline)}
    ${steps.length > 0 && heldOutAnswers(`after step ${steps.at(-1)!.step}`, steps.at(-1)!.eval)}
  </section>`;
}

const columns = [
  { heading: "measurement" },
  "margin",
  "change",
  "p",
  "held out",
  "seen",
  "general",
  "entropy ratio",
  "self-ROUGE-L",
  "own drift",
  "baseline drift",
  "loss",
  "time",
];

function measurementRow(name: string, measurement: FeedbackMeasurement, line: FeedbackStep | null): Html {
  const { logprob_margin: margin, preference_compliance: compliance, general, collapse } = measurement;
  const why = margin?.reason ?? null;
  const collapseCell = (key: "entropy_ratio" | "self_rouge_l" | "own_drift" | "baseline_drift"): Html =>
    cell(formatValue(collapse?.[key], ""), {
      isAlert: collapse?.alerts.includes(key) ?? false,
      why: collapse?.unknown[key] ?? null,
    });
  const loss = line?.sdpo_metrics["loss"];
  const unknown = line?.unknown ?? {};
  return html`<tr>
    <th scope="row">${name}</th>
    ${cell(formatValue(margin?.margin, "nats"), { why })} ${cell(formatDelta(margin?.margin_delta, "nats"), { why: why ?? unknown["logprob_margin_delta"] ?? null })}
    ${cell(pText(margin?.p ?? null), { why: why ?? unknown["logprob_margin_p"] ?? null })}
    ${cell(formatValue(compliance?.held_out, "share"), {
      why: unknown["held_out_compliance"] ?? null,
      n: compliance?.held_out_n,
    })}
    ${cell(formatValue(compliance?.seen, "share"), { n: compliance?.seen_n })}
    ${cell(formatValue(general?.general, "share"), {
      why: failuresOf(general?.failures ?? {}) ?? "",
    })}
    ${collapseCell("entropy_ratio")} ${collapseCell("self_rouge_l")} ${collapseCell("own_drift")} ${collapseCell("baseline_drift")}
    ${cell(typeof loss === "number" ? formatValue(loss, "") : missingValueText, { why: unknown["loss"] ?? null })}
    ${cell(line === null ? missingValueText : formatSeconds(line.timing_s))}
  </tr>`;
}

/** Returns a p value for a column with that heading. */
export const pText = (p: number | null): string => formatP(p).replace(/^p (= )?/, "");

interface CellNotes {
  readonly why?: string | null;
  readonly n?: number | undefined;
  readonly isAlert?: boolean;
}

function cell(value: string, { why = null, n, isAlert = false }: CellNotes = {}): Html {
  const title = why ?? (n === undefined ? "" : `n = ${n}`);
  const hasTitle = title !== "";
  return html`<td${hasTitle && html` title="${title}"`}${isAlert && html` class="alert"`}>${isAlert && "▲ "}${value}</td>`;
}

function heldOutAnswers(when: string, { rollouts }: FeedbackMeasurement): Html | false {
  const shown = rollouts.filter((rollout) => rollout.of === "compliance");
  return (
    shown.length > 0 &&
    html`<details>
      <summary>Answers to held-out and seen prompts <span>${when}</span></summary>
      ${shown.map(({ of, prompt, response, score }) => answer(humanizeName(of), prompt, response, score))}
    </details>`
  );
}

const answer = (label: string, prompt: string, response: string, score: number | null): Html =>
  html`<div class="answer">
    <p>${label} · ${score === null ? "not graded" : `reward ${formatValue(score, "")}`} · ${prompt}</p>
    <pre>${response}</pre>
  </div>`;

/** Returns one line for each value that is not known, with the reason, and the steps if only some lack it. */
function unknownNotes({ steps, summary }: FeedbackPreference): readonly string[] {
  const stepsByNote = new Map<string, number[]>();
  const note = (unknown: Readonly<Record<string, string>> = {}, step: number | null) => {
    for (const [name, reason] of Object.entries(unknown)) {
      const key = `${humanizeName(name)}: ${reason}`;
      stepsByNote.set(key, [...(stepsByNote.get(key) ?? []), ...(step === null ? [] : [step])]);
    }
  };
  // Without a step, only the summary has the baseline's reasons.
  if (steps.length === 0) note(summary.unknown, null);
  for (const line of steps) note(line.unknown, line.step);
  return [...stepsByNote].map(([text, at]) =>
    at.length === steps.length ? text : `${text} (step ${at.join(", ")})`,
  );
}
