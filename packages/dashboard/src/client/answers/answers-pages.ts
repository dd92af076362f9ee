import { isAnchor, type MeasurementAnswers, type AnswerRow } from "../../page-data/answers-data.ts";
import { evenly } from "../../page-data/run-data.ts";
import { create, messageOf, save } from "../dom.ts";
import { matches, questionOf, shownKind, worstFirst } from "./answer-filters.ts";
import { linkTo, type AnswerSelection } from "./answer-selection.ts";
import { answerView, stepsView, type AnswerAtStep } from "./answer-view.ts";
import type { AnswersSource, ReadAnswers, SaveLabel } from "./source.ts";

/** A part of the page: what it shows in one sentence, and its content. */
export interface View {
  readonly text: string;
  readonly content: readonly HTMLElement[];
}

/** The actions of the buttons and lists of the answers. */
export interface PageActions {
  turnTo(page: number): void;
  searchMore(): void;
  readonly saveLabel: SaveLabel | null;
}

const answersPerPage = 20;
/** Measurements whose answers are shown side by side. */
const maxSteps = 24;

/** Renders one page of the answers that match the selection. */
export function pageView(
  { rows, read, total }: ReadAnswers,
  measurement: MeasurementAnswers,
  selection: AnswerSelection,
  { saveLabel, ...actions }: PageActions,
): View {
  const { grades = [] } = measurement.declared;
  const canLabel = saveLabel !== null && grades.includes("aligned");
  const ofKind = shownKind(rows, selection.show);
  const kept = ofKind.filter((row) => matches(row, selection));
  const sorted = selection.order === "worst" ? worstFirst(kept, measurement.declared) : kept;
  const pages = Math.max(1, Math.ceil(sorted.length / answersPerPage));
  const page = Math.min(selection.page, pages);
  const shown = sorted.slice((page - 1) * answersPerPage, page * answersPerPage);
  const onPage = pages > 1 ? ` · page ${page} of ${pages}` : "";
  return {
    text: `${kept.length} of ${ofKind.length} ${selection.show === "anchor" ? "anchors" : "answers"}${onPage}`,
    content: [
      ...shown.map((row) =>
        answerView(
          row,
          linkTo({ ...selection, item: row.item, sample: row.sample }),
          measurement.example,
          canLabel && !isAnchor(row) ? (label) => saveLabel!(measurement, row, label) : null,
        ),
      ),
      create(
        "p",
        { class: "key print-only" },
        `Printed: ${shown.length} of the ${sorted.length} selected answers of ${measurement.phase}, ${measurement.id}, step ${measurement.step}. ` +
          "The page on a screen shows the other answers, and those of all other measurements.",
      ),
      ...(pages > 1 ? [pageButtons(page, pages, actions)] : []),
      ...(read < total ? [searchMore(read, total, actions)] : []),
      ...downloadOf(
        sorted.map((row) => ({ measurement, row })),
        [selection.phase, selection.id, "step", selection.step, selection.show],
      ),
    ],
  };
}

function pageButtons(page: number, pages: number, { turnTo }: Pick<PageActions, "turnTo">): HTMLElement {
  const button = (to: number, text: string): HTMLElement => {
    const element = create("button", { type: "button" }, text);
    element.disabled = to < 1 || to > pages;
    element.addEventListener("click", () => turnTo(to));
    return element;
  };
  const here = create("span", {}, `page ${page} of ${pages}`);
  const attributes = { class: "turns", "aria-label": "Pages of answers" };
  return create("nav", attributes, button(page - 1, "← Previous"), here, button(page + 1, "Next →"));
}

function searchMore(read: number, total: number, actions: Pick<PageActions, "searchMore">): HTMLElement {
  const button = create("button", { type: "button" }, "Search more");
  button.addEventListener("click", () => actions.searchMore());
  return create("p", { class: "key" }, `The first ${read} of ${total} stored rows are searched. `, button);
}

/** Renders the answers to the selected item at all steps, side by side. */
export async function itemView(
  all: readonly MeasurementAnswers[],
  selection: AnswerSelection,
  rowsOf: (measurement: MeasurementAnswers) => ReturnType<AnswersSource["rows"]>,
): Promise<View> {
  const ofCallback = all.filter(({ id }) => id === selection.id);
  const shown = evenly(ofCallback, maxSteps);
  const answers: AnswerAtStep[] = [];
  for (const one of shown) answers.push(await answerAt(one, selection, rowsOf));
  const row = answers.find((answer) => answer.row !== null)?.row ?? null;
  const count = shown.length < ofCallback.length ? `${shown.length} of ${ofCallback.length}` : shown.length;
  const who = [row?.persona ?? null, selection.sample > 0 ? `answer ${selection.sample + 1}` : null];
  const back = linkTo({ ...selection, item: "", sample: 0 });
  return {
    text: `The same question at ${count} measurements.`,
    content: [
      create("p", {}, create("a", { href: back }, "← All answers")),
      create("h3", { class: "asked" }, row === null ? selection.item : questionOf(row)),
      create("p", { class: "about" }, who.filter((part) => part !== null).join(" · ")),
      ...stepsView(answers, selection.marks),
      ...downloadOf(
        answers.flatMap(({ row: one }, at) => (one === null ? [] : [{ measurement: shown[at]!, row: one }])),
        [selection.id, selection.item],
      ),
    ],
  };
}

async function answerAt(
  one: MeasurementAnswers,
  { phase, step, item, sample }: AnswerSelection,
  rowsOf: (measurement: MeasurementAnswers) => ReturnType<AnswersSource["rows"]>,
): Promise<AnswerAtStep> {
  const title = `${one.phase} · step ${one.step}`;
  const isSelected = one.phase === phase && String(one.step) === step;
  try {
    const { rows } = await rowsOf(one);
    const row = rows.find((answer) => answer.item === item && answer.sample === sample) ?? null;
    return { title, phase: one.phase, isSelected, row, problem: null };
  } catch (error) {
    return { title, phase: one.phase, isSelected, row: null, problem: messageOf(error) };
  }
}

/** An answer and the measurement that it belongs to. */
interface PlacedAnswer {
  readonly measurement: Pick<MeasurementAnswers, "phase" | "id" | "step">;
  readonly row: AnswerRow;
}

/**
 * Creates a button that downloads answers as JSON Lines, one answer per line; none without answers.
 *
 * @param name What the answers have in common, for the name of the file.
 */
function downloadOf(answers: readonly PlacedAnswer[], name: readonly string[]): readonly HTMLElement[] {
  if (answers.length === 0) return [];
  const text = `Download ${answers.length === 1 ? "this answer" : `these ${answers.length} answers`} as JSONL`;
  const button = create("button", { type: "button" }, text);
  button.addEventListener("click", () => {
    const lines = answers.map(
      ({ measurement: { phase, id, step }, row }) => `${JSON.stringify({ phase, id, step, ...row })}\n`,
    );
    const file = name.filter((part) => part !== "").join("_");
    save(new Blob(lines, { type: "application/jsonl" }), `${file}.jsonl`);
  });
  return [create("p", { class: "download-answers" }, button)];
}

/** An option of a list: its value and its text. */
export type Choice = readonly [value: string, text: string];

/** A list with a label. */
interface SelectControl {
  readonly element: HTMLElement;
  /** Replaces the options. Selects the first one if `value` is not among them, and returns the selected value. */
  fill(choices: readonly Choice[], value: string): string;
}

const maxTextLength = 90;

export function selectControl(label: string, onChange: (value: string) => void): SelectControl {
  const select = create("select");
  select.addEventListener("change", () => onChange(select.value));
  return {
    element: create("label", {}, create("span", {}, label), select),
    fill(choices, value) {
      const isSame =
        select.options.length === choices.length &&
        choices.every(([one, text], at) => {
          const option = select.options[at]!;
          return option.value === one && option.textContent === shortened(text);
        });
      if (!isSame)
        select.replaceChildren(
          ...choices.map(([one, text]) => create("option", { value: one }, shortened(text))),
        );
      select.value = choices.some(([one]) => one === value) ? value : (choices[0]?.[0] ?? "");
      select.disabled = choices.length < 2;
      return select.value;
    },
  };
}

function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > maxTextLength ? `${line.slice(0, maxTextLength)}…` : line;
}

/** Returns the distinct values of a list, in order. */
export const distinct = <T>(values: readonly T[]): readonly T[] => [...new Set(values)];
