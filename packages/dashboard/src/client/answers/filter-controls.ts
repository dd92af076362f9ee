import { create } from "../dom.ts";
import { questionOf, shownKind } from "./answer-filters.ts";
import { noSelection, type AnswerSelection, type MarkedFrom } from "./answer-selection.ts";
import { flagName } from "../../page-data/answer-text.ts";
import type { AnswerRow, MeasurementAnswers } from "../../page-data/answers-data.ts";
import { distinct, selectControl, type Choice } from "./controls.ts";

/** The lists and the search field above the answers. */
export interface FilterControls {
  readonly element: HTMLElement;
  /** Fills the lists of callbacks and steps, and returns the selected measurement. */
  fillMeasurements(all: readonly MeasurementAnswers[], selection: AnswerSelection): MeasurementAnswers;
  /** Fills the lists that depend on the answers of the measurement. */
  fillAnswers(rows: readonly AnswerRow[], selection: AnswerSelection): void;
}

const maxQuestions = 1000;
const typingPauseMs = 200;

const orderChoices: readonly Choice[] = [
  ["worst", "worst first"],
  ["asked", "as asked"],
];

const marksChoices: readonly Choice[] = [
  ["before", "marked since the measurement before"],
  ["start", "marked since the start of the phase"],
  ["none", "not marked"],
];

/**
 * Creates the lists and the search field.
 *
 * @param mark Changes the marks of a question at all steps, which stays selected.
 */
export function filterControls(
  select: (change: Partial<AnswerSelection>) => void,
  mark: (marks: MarkedFrom) => void,
): FilterControls {
  const callbacks = selectControl("Callback", (key) => {
    const [phase, id] = JSON.parse(key) as readonly [string, string];
    const { order: _, ...cleared } = noSelection;
    select({ ...cleared, phase, id });
  });
  const steps = selectControl("Step", (step) => select({ step }));
  const shows = selectControl("Show", (show) => select({ show }));
  const personas = selectControl("Persona", (persona) => select({ persona }));
  const questions = selectControl("Question", (question) => select({ question }));
  const orders = selectControl("Order", (order) => select({ order: order === "asked" ? "asked" : "worst" }));
  const marks = selectControl("Changed words", (value) => mark(value as MarkedFrom));
  marks.element.classList.add("marks");
  const search = searchField((text) => select({ text }));
  const lists = [callbacks, steps, shows, personas, questions, orders].map(({ element }) => element);
  const label = create("label", {}, create("span", {}, "Search"), search);
  const attributes = { class: "filters", role: "search", "aria-label": "Answers" };
  return {
    element: create("div", attributes, ...lists, label, marks.element),
    fillMeasurements(all, selection) {
      const keys = distinct(all.map(({ phase, id }) => JSON.stringify([phase, id])));
      const { phase, id } = callbackOf(all, selection);
      const callbackChoices = keys.map((key): Choice => [key, (JSON.parse(key) as string[]).join(" · ")]);
      callbacks.fill(callbackChoices, JSON.stringify([phase, id]));
      const ofCallback = all.filter((one) => one.phase === phase && one.id === id);
      const one = ofCallback.find(({ step }) => String(step) === selection.step) ?? ofCallback.at(-1)!;
      steps.fill(
        ofCallback.map(({ step }): Choice => [String(step), String(step)]),
        String(one.step),
      );
      marks.fill(marksChoices, selection.marks);
      return one;
    },
    fillAnswers(all, selection) {
      const rows = shownKind(all, selection.show);
      const people = distinct(rows.flatMap(({ persona }) => persona ?? []));
      const asked = distinct(rows.map(questionOf)).slice(0, maxQuestions);
      const answers = shownKind(all, "").length;
      shows.fill([["", `all (${answers})`], ...flagChoices(all, selection.show)], selection.show);
      const personaChoices = withAll(people, selection.persona).map(([value, name]): Choice => [
        value,
        name.replace(/^!/, "all but "),
      ]);
      personas.fill(personaChoices, selection.persona);
      questions.fill(withAll(asked, selection.question), selection.question);
      orders.fill(orderChoices, selection.order);
      personas.element.hidden = people.length === 0;
      if (document.activeElement !== search) search.value = selection.text;
    },
  };
}

/** Returns the selected callback; by default the first one of the last phase. */
function callbackOf(all: readonly MeasurementAnswers[], { phase, id }: AnswerSelection): MeasurementAnswers {
  const lastPhase = all.at(-1)!.phase;
  return (
    all.find((one) => one.phase === phase && one.id === id) ?? all.find((one) => one.phase === lastPhase)!
  );
}

function flagChoices(rows: readonly AnswerRow[], selected: string): readonly Choice[] {
  const flags = distinct([...rows.flatMap((row) => row.flags), ...(selected === "" ? [] : [selected])]);
  return flags.map((flag): Choice => {
    const count = rows.filter((row) => row.flags.includes(flag)).length;
    return [flag, `${flagName(flag)} (${count})`];
  });
}

/** A selected value that this measurement does not have stays selected: no answer matches then. */
function withAll(values: readonly string[], selected: string): readonly Choice[] {
  const all = selected === "" || values.includes(selected) ? values : [...values, selected];
  return [["", "all"], ...all.map((one): Choice => [one, one])];
}

function searchField(onSearch: (text: string) => void): HTMLInputElement {
  const field = create("input", { type: "search", autocomplete: "off", spellcheck: "false" });
  let typing = 0;
  field.addEventListener("input", () => {
    clearTimeout(typing);
    typing = window.setTimeout(() => onSearch(field.value), typingPauseMs);
  });
  return field;
}
