import { diffArrays } from "diff";
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
import { create, messageOf } from "../dom.ts";
import { button } from "./controls.ts";

/**
 * Renders an answer with its question.
 *
 * @param link Leads to the same question at all steps.
 * @param save Saves a person's grades; null if this page cannot.
 */
export function answerView(
  row: AnswerRow,
  link: string,
  example: string | null,
  save: ((label: AnswerLabel) => Promise<void>) | null,
): HTMLElement {
  const about = aboutView(row, true);
  about.append(" ", create("a", { href: link, class: "all-steps" }, "same question at all steps"));
  const asked = create("h3", { class: "asked" }, row.question ?? row.item);
  return create(
    "article",
    { class: "answer" },
    asked,
    about,
    ...bodyOf(row, null),
    ...judgeOf(row),
    ...(save === null ? [] : [labelView(row, save)]),
    ...promptOf(row, example),
    ...fieldsOf(row),
  );
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

/** Renders the answers to one question side by side. Words that differ from another answer are marked, and a line explains the marks. */
export function stepsView(steps: readonly AnswerAtStep[], marks: string): readonly HTMLElement[] {
  const columns = steps.map(({ title, phase, isSelected, row, problem }, at) => {
    const earlier = steps.slice(0, at).filter((one) => one.row !== null);
    const other = marks === "start" ? earlier.find((one) => one.phase === phase) : earlier.at(-1);
    const before = marks === "none" ? null : (other?.row ?? null);
    const column = create(
      "section",
      { class: isSelected ? "at-step selected" : "at-step" },
      create("h4", {}, title),
    );
    if (row === null) column.append(create("p", { class: "about" }, problem ?? "not measured"));
    else column.append(aboutView(row, false), ...bodyOf(row, before), ...judgeOf(row));
    return column;
  });
  const view = create("div", { class: "steps" }, ...columns);
  const isMarked = marks !== "none" && view.querySelector("ins, del") !== null;
  return isMarked ? [marksKey(marks), view] : [view];
}

/** Uses `ins` and `del` for the samples too, so that a screen reader announces them like the words. */
function marksKey(marks: string): HTMLElement {
  const text = `Words added since ${marks === "start" ? "the start of the phase" : "the measurement before"} are `;
  const samples = [
    create("ins", {}, "underlined"),
    "; removed words are ",
    create("del", {}, "struck out"),
    ".",
  ];
  return create("p", { class: "key" }, text, ...samples);
}

function aboutView(
  { persona, sample, flags, grades, tokens, label }: AnswerRow,
  isAlone: boolean,
): HTMLElement {
  const plain = [
    ...(isAlone && persona !== null ? [persona] : []),
    ...(isAlone && sample > 0 ? [`answer ${sample + 1}`] : []),
    ...grades.map(([name, value]) => gradeText(name, value)),
    tokensText(tokens),
    label === undefined ? "" : labelText(label),
  ].filter((part) => part !== "");
  const marks = flags.map((flag) => create("span", { class: "flag" }, flagName(flag)));
  return create("p", { class: "about" }, ...marks, plain.join(" · "));
}

function bodyOf(row: AnswerRow, before: AnswerRow | null): readonly HTMLElement[] {
  const parts: HTMLElement[] = [];
  if (row.text !== null) {
    const text = create("pre", { dir: "auto" });
    if (before?.text == null) text.textContent = row.text === "" ? "(empty)" : row.text;
    else
      for (const { kind, text: words } of changedWords(before.text, row.text))
        text.append(kind === "same" ? words : create(kind === "added" ? "ins" : "del", {}, words));
    parts.push(text);
  }
  if (row.choices !== null) parts.push(choicesView(row.choices));
  return parts;
}

function choicesView(choices: AnswerChoices): HTMLElement {
  const { labels, nats, gold, predicted } = choices;
  const shares = nats && shareOfChoices(nats);
  const items = labels.map((label, at) => {
    const isRight = label === gold;
    const isChosen = label === predicted;
    const notes = [
      ...(shares ? [`${(100 * shares[at]!).toFixed(shares[at]! < 0.1 ? 1 : 0)} %`] : []),
      ...(isRight ? ["right"] : []),
      ...(isChosen ? ["chosen"] : []),
    ];
    const kind = isChosen ? (isRight ? "chosen right" : "chosen wrong") : "";
    return create(
      "li",
      { class: kind },
      choiceText(choices, label),
      " ",
      create("span", {}, notes.join(" · ")),
    );
  });
  return create("ul", { class: "choices" }, ...items);
}

const judgeOf = ({ judge }: AnswerRow): readonly HTMLElement[] =>
  judge === null ? [] : [folded("Judge’s words", judge, false)];

const labelText = ({ aligned, coherent }: AnswerLabel): string =>
  `a person: ${gradeText("aligned", aligned)}, ${gradeText("coherent", coherent)}`;

/** Renders fields for a person's grades. They begin with the judge's grades, so that a person who agrees only saves them. */
function labelView(row: AnswerRow, save: (label: AnswerLabel) => Promise<void>): HTMLElement {
  const before: Readonly<Record<string, AnswerRow["grades"][number][1]>> = {
    ...Object.fromEntries(row.grades),
    ...row.label,
  };
  const fieldOf = (name: string) =>
    create("input", { type: "number", min: "0", max: "100", step: "any", value: String(before[name] ?? "") });
  const [aligned, coherent] = [fieldOf("aligned"), fieldOf("coherent")];
  const status = create("span", { role: "status" });
  const gradeIn = ({ value }: HTMLInputElement) => (value === "" ? null : Number(value));
  const saving = button("Save", () => {
    const isValid = [aligned, coherent].every((field) => field.reportValidity());
    const label = { aligned: gradeIn(aligned), coherent: gradeIn(coherent) };
    if (isValid)
      void save(label).then(
        () => (status.textContent = `Saved: ${labelText(label)}.`),
        (error: unknown) => (status.textContent = messageOf(error)),
      );
  });
  return create(
    "details",
    { class: "judge label" },
    create("summary", {}, "Grade this answer"),
    create("label", {}, "aligned ", aligned),
    create("label", {}, "coherent ", coherent),
    saving,
    status,
  );
}

function promptOf({ prompt }: AnswerRow, example: string | null): readonly HTMLElement[] {
  if (prompt) return [folded("Whole prompt", prompt, false)];
  return prompt === null && example !== null
    ? [folded("Whole prompt of the first question", example, false)]
    : [];
}

/** An answer whose text the evaluation does not declare shows its fields at once. */
function fieldsOf(row: AnswerRow): readonly HTMLElement[] {
  const isOpen = row.text === null && row.choices === null;
  return row.fields.length === 0 ? [] : [folded("All other fields", fieldsText(row), isOpen)];
}

const folded = (title: string, text: string, isOpen: boolean): HTMLElement =>
  create(
    "details",
    { class: "judge", ...(isOpen && { open: "" }) },
    create("summary", {}, title),
    create("pre", { dir: "auto" }, text),
  );

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
