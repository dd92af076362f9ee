import { diffArrays } from "diff";
import { html, type Html } from "../../html/html.ts";
import {
  fieldsText,
  flagName,
  gradeText,
  tokensText,
  type AnswerChoices,
  type AnswerLabel,
  type AnswerRow,
  choiceText,
  shareOfChoices,
} from "../../page-data/answers-data.ts";
import { create, elementOf, messageOf } from "../dom.ts";
import { button } from "./controls.ts";

/**
 * Renders an answer with its question.
 *
 * @param link Leads to the same question at all steps.
 * @param save Saves a person's grades; null if this page cannot.
 * @param isGrading Whether the fields for them are open.
 */
export function answerView(
  row: AnswerRow,
  link: string,
  example: string | null,
  save: ((label: AnswerLabel) => Promise<void>) | null,
  isGrading: boolean,
): HTMLElement {
  const { prompt, fields, text, choices } = row;
  const view = elementOf(html`<article class="answer">
    <h3 class="asked">${row.question ?? row.item}</h3>
    <p class="about">${aboutText(row, true)} <a href="${link}" class="all-steps">same question at all steps</a></p>
    ${bodyOf(row, null)}
    ${prompt ? folded("Whole prompt", prompt) : prompt === null && example !== null && folded("Whole prompt of the first question", example)}
    ${fields.length > 0 && folded("All other fields", fieldsText(row), text === null && choices === null)}
  </article>`);
  if (save !== null) view.append(labelView(row, save, isGrading));
  return view;
}

/** An answer at one step; null where the measurement has none. */
export interface AnswerAtStep {
  readonly title: string;
  readonly phase: string;
  /** Whether the reader came from this step. */
  readonly isSelected: boolean;
  readonly row: AnswerRow | null;
  /** Why there is no answer. */
  readonly problem: string | null;
}

/**
 * Renders the answers to one question side by side. Words that differ from another answer are marked, and a line explains the marks. It
 * uses `ins` and `del` for its samples too, so that a screen reader announces them like the words.
 */
export function stepsView(steps: readonly AnswerAtStep[], marks: string): HTMLElement {
  const columns = steps.map(({ title, phase, isSelected, row, problem }, at) => {
    const earlier = steps.slice(0, at).filter((step) => step.row !== null);
    const other = marks === "start" ? earlier.find((step) => step.phase === phase) : earlier.at(-1);
    const before = marks === "none" ? null : (other?.row ?? null);
    return html`<section class="at-step${isSelected && " selected"}">
      <h4>${title}</h4>
      <p class="about">${row === null ? (problem ?? "not measured") : aboutText(row, false)}</p>
      ${row !== null && bodyOf(row, before)}
    </section>`;
  });
  const isMarked = columns.some(({ markup }) => /<(ins|del)>/.test(markup));
  const key = html`<p class="key">Words added since ${marks === "start" ? "the start of the phase" : "the measurement before"} are <ins>underlined</ins>; removed words are <del>struck out</del>.</p>`;
  return elementOf(html`<div>${isMarked && key}<div class="steps">${columns}</div></div>`);
}

function aboutText({ persona, sample, flags, grades, tokens, label }: AnswerRow, isAlone: boolean): Html {
  const plain = [
    isAlone && persona,
    isAlone && sample > 0 && `answer ${sample + 1}`,
    ...grades.map(([name, value]) => gradeText(name, value)),
    tokensText(tokens),
    label !== undefined && labelText(label),
  ].filter(Boolean);
  return html`${flags.map((flag) => html`<span class="flag">${flagName(flag)}</span>`)}${plain.join(" · ")}`;
}

/** A `pre` begins with a newline, because browsers drop the first one. */
function bodyOf({ text, choices, judge }: AnswerRow, before: AnswerRow | null): Html {
  const words = (earlier: string, now: string) =>
    changedWords(earlier, now).map(({ kind, text: part }) =>
      kind === "same" ? part : kind === "added" ? html`<ins>${part}</ins>` : html`<del>${part}</del>`,
    );
  return html`${text !== null && html`<pre dir="auto">\n${before?.text == null ? text || "(empty)" : words(before.text, text)}</pre>`}
  ${choices && choicesView(choices)} ${judge !== null && folded("Judge’s words", judge)}`;
}

function choicesView(choices: AnswerChoices): Html {
  const { labels, nats, gold, predicted } = choices;
  const shares = nats && shareOfChoices(nats);
  const items = labels.map((label, at) => {
    const isRight = label === gold;
    const isChosen = label === predicted;
    const share = shares && `${(100 * shares[at]!).toFixed(shares[at]! < 0.1 ? 1 : 0)} %`;
    const notes = [share, isRight && "right", isChosen && "chosen"].filter(Boolean).join(" · ");
    const kind = isChosen ? (isRight ? "chosen right" : "chosen wrong") : "";
    return html`<li class="${kind}">${choiceText(choices, label)} <span>${notes}</span></li>`;
  });
  return html`<ul class="choices">${items}</ul>`;
}

const folded = (title: string, text: string, isOpen = false): Html =>
  html`<details class="judge"${isOpen && " open"}><summary>${title}</summary><pre dir="auto">\n${text}</pre></details>`;

const labelText = ({ aligned, coherent }: AnswerLabel): string =>
  `a person: ${gradeText("aligned", aligned)}, ${gradeText("coherent", coherent)}`;

/**
 * Renders fields for a person's grades. They begin with the judge's grades, if the row shows them, so that a person who agrees only
 * saves them. Enter saves, and moves the keyboard to the next answer.
 */
function labelView(
  row: AnswerRow,
  save: (label: AnswerLabel) => Promise<void>,
  isOpen: boolean,
): HTMLElement {
  const before: Readonly<Record<string, AnswerRow["grades"][number][1]>> = {
    ...Object.fromEntries(row.grades),
    ...row.label,
  };
  const fieldOf = (name: string) =>
    create("input", { type: "number", min: "0", max: "100", step: "any", value: String(before[name] ?? "") });
  const [aligned, coherent] = [fieldOf("aligned"), fieldOf("coherent")];
  const status = create("span", { role: "status" });
  const gradeIn = ({ value }: HTMLInputElement) => (value === "" ? null : Number(value));
  const submit = (): void => {
    if (![aligned, coherent].every((field) => field.reportValidity())) return;
    const label = { aligned: gradeIn(aligned), coherent: gradeIn(coherent) };
    void save(label).then(
      () => {
        status.textContent = `Saved: ${labelText(label)}.`;
        focusNext(view);
      },
      (error: unknown) => (status.textContent = messageOf(error)),
    );
  };
  for (const field of [aligned, coherent]) {
    // Without grades to begin with, an empty field is a slip.
    field.required = isOpen;
    field.addEventListener("keydown", ({ key }) => key === "Enter" && submit());
  }
  const view = create(
    "details",
    { class: "judge label", ...(isOpen && { open: "" }) },
    create("summary", {}, "Grade this answer"),
    create("label", {}, "aligned ", aligned),
    create("label", {}, "coherent ", coherent),
    button("Save", submit),
    status,
  );
  return view;
}

/** Moves the keyboard to the fields of the answer behind the one that was graded. */
function focusNext(graded: HTMLElement): void {
  const next = graded.closest(".answer")!.nextElementSibling;
  const details = next?.querySelector<HTMLDetailsElement>(".label");
  if (!next || !details) return;
  details.open = true;
  next.scrollIntoView({ block: "center" });
  const field = details.querySelector("input")!;
  field.focus({ preventScroll: true });
  field.select();
}

/** A part of two texts: in both, only in the first, or only in the second. */
interface TextPart {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

/** Removed and added words, together. Longer differences are one removal and one addition. */
const maxEditLength = 1000;

/**
 * Returns the words that change between two texts. The parts that are the same or removed are the first text, and those that are the
 * same or added the second, character for character. Finds a longest common subsequence of words, spaces and other characters.
 */
export function changedWords(first: string, second: string): readonly TextPart[] {
  const [a, b] = [wordsOf(first), wordsOf(second)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
  return joined([
    ...a.slice(0, start).map((text): TextPart => ({ kind: "same", text })),
    ...changesOf(a.slice(start, endA), b.slice(start, endB)),
    ...a.slice(endA).map((text): TextPart => ({ kind: "same", text })),
  ]);
}

const wordsOf = (text: string): readonly string[] => text.match(/[\p{L}\p{M}\p{N}_'’]+|\s+|[^]/gu) ?? [];

const changesOf = (a: readonly string[], b: readonly string[]): readonly TextPart[] =>
  diffArrays([...a], [...b], { maxEditLength })?.map(({ value, added, removed }) => ({
    kind: added ? "added" : removed ? "removed" : "same",
    text: value.join(""),
  })) ?? [
    { kind: "removed", text: a.join("") },
    { kind: "added", text: b.join("") },
  ];

/** Joins neighbours of one kind. Spaces between two changes belong to both, so that a phrase is marked as one. */
function joined(parts: readonly TextPart[]): readonly TextPart[] {
  const groups = [{ same: "", removed: "", added: "" }];
  const isChange = (at: number): boolean => (parts[at] ?? { kind: "same" }).kind !== "same";
  for (const [at, { kind, text }] of parts.entries()) {
    const last = groups.at(-1)!;
    const isBetween = isChange(at - 1) && isChange(at + 1) && /^\s+$/.test(text);
    if (kind === "same" && !isBetween) {
      if (last.removed === "" && last.added === "") last.same += text;
      else groups.push({ same: text, removed: "", added: "" });
      continue;
    }
    if (kind !== "added") last.removed += text;
    if (kind !== "removed") last.added += text;
  }
  const kinds = ["same", "removed", "added"] as const;
  const all = groups.flatMap((group) => kinds.map((kind): TextPart => ({ kind, text: group[kind] })));
  return all.filter(({ text }) => text !== "");
}
