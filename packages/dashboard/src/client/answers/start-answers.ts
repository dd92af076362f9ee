import { browseScores } from "./scores.ts";
import {
  wordsKey,
  flagName,
  type AnswersData,
  type MeasurementAnswers,
  type AnswerRow,
} from "../../page-data/answers-data.ts";
import { create, readDataBlock } from "../dom.ts";
import { questionOf, shownKind } from "./answer-filters.ts";
import {
  linkTo,
  type AnswerSelection,
  noSelection,
  focusOn,
  onHash,
  readSelection,
  writeHash,
} from "./answer-selection.ts";
import { itemView, pageView, type PageActions } from "./answers-pages.ts";
import { distinct, latest, selectControl, type Choice } from "./controls.ts";
import { browseQuestions } from "./questions-browser.ts";
import { answersSource, type AnswersSource, type ReadAnswers } from "./source.ts";

const maxQuestions = 1000;
const typingPauseMs = 200;

const orderChoices: readonly Choice[] = [
  ["worst", "worst first"],
  ["asked", "as asked"],
];
const blindChoice: Choice = ["blind", "to grade, without the judge’s grades"];

const marksChoices: readonly Choice[] = [
  ["before", "marked since the measurement before"],
  ["start", "marked since the start of the phase"],
  ["none", "not marked"],
];

/** The lists above the answers, by what they select. */
const labels = {
  callback: "Callback",
  step: "Step",
  show: "Show",
  persona: "Persona",
  question: "Question",
  order: "Order",
  marks: "Changed words",
} as const;

/** Creates the lists and the search field. */
function filterControls(select: (name: keyof typeof labels | "text", value: string) => void) {
  const control = (name: keyof typeof labels) => selectControl(labels[name], (value) => select(name, value));
  const [callbacks, steps, shows] = [control("callback"), control("step"), control("show")];
  const [personas, questions, orders] = [control("persona"), control("question"), control("order")];
  const marks = control("marks");
  marks.element.classList.add("marks");
  const search = searchField((text) => select("text", text));
  const lists = [callbacks, steps, shows, personas, questions, orders].map(({ element }) => element);
  const label = create("label", {}, create("span", {}, "Search"), search);
  const attributes = { class: "filters", role: "search", "aria-label": "Answers" };
  return {
    element: create("div", attributes, ...lists, label, marks.element),
    /** Fills the lists of callbacks and steps, and returns the selected measurement; by default the last one of the last phase's first callback. */
    fillMeasurements(all: readonly MeasurementAnswers[], selection: AnswerSelection): MeasurementAnswers {
      const keyOf = ({ phase, id }: Pick<AnswerSelection, "phase" | "id">) => JSON.stringify([phase, id]);
      const names = new Map(all.map((entry) => [keyOf(entry), `${entry.phase} · ${entry.id}`]));
      const first = all.find(({ phase }) => phase === all.at(-1)!.phase)!;
      const key = names.has(keyOf(selection)) ? keyOf(selection) : keyOf(first);
      callbacks.fill([...names], key);
      const ofCallback = all.filter((entry) => keyOf(entry) === key);
      const chosen = ofCallback.find(({ step }) => String(step) === selection.step) ?? ofCallback.at(-1)!;
      const choices = ofCallback.map(({ step }): Choice => [String(step), String(step)]);
      steps.fill(choices, String(chosen.step));
      marks.fill(marksChoices, selection.marks);
      return chosen;
    },
    /** Fills the lists that depend on the answers of the measurement. */
    fillAnswers(
      all: readonly AnswerRow[],
      { show, persona, question, order, text }: AnswerSelection,
      isGraded: boolean,
    ): void {
      const rows = shownKind(all, show);
      const people = distinct(rows.flatMap((row) => row.persona ?? []));
      const asked = distinct(rows.map(questionOf)).slice(0, maxQuestions);
      shows.fill([["", `all (${shownKind(all, "").length})`], ...flagChoices(all, show)], show);
      const personaChoices = withAll(people, persona);
      personas.fill(
        personaChoices.map(([value, name]): Choice => [value, name.replace(/^!/, "all but ")]),
        persona,
      );
      questions.fill(withAll(asked, question), question);
      orders.fill(isGraded ? [...orderChoices, blindChoice] : orderChoices, order);
      personas.element.hidden = people.length === 0;
      if (document.activeElement !== search) search.value = text;
    },
  };
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
  return [["", "all"], ...all.map((value): Choice => [value, value])];
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

const aboutAnswers = "Every answer of every measurement. The address of this page holds the selection.";

/** Rows of one measurement that are searched at first. */
const searchedRows = 5000;

/** Replaces the first answers by all answers, with filters, a search and pages. */
function browseAnswers(root: HTMLElement, source: AnswersSource): { readonly update: () => void } {
  let selection = readSelection("answers", noSelection) ?? noSelection;
  let limit = searchedRows;
  /** Describes the shown list. An update that changes nothing of it leaves it as it is. */
  let shown = "";
  /** The measurement that is shown. */
  let here: Pick<AnswerSelection, "phase" | "id" | "step"> = selection;

  const select = (change: Partial<AnswerSelection>): void => {
    selection = { ...selection, ...here, page: 1, item: "", sample: 0, ...change };
    writeHash(linkTo(selection));
    update();
  };
  const filters = filterControls((name, value) => {
    const { item, sample } = selection;
    // The marks are those of a question at all steps, which stays selected.
    if (name === "marks") return select({ item, sample, marks: value });
    if (name !== "callback") return select({ [name]: value });
    const [phase, id] = JSON.parse(value) as readonly [string, string];
    select({ ...noSelection, order: selection.order, phase, id });
  });
  const [summary, list] = [create("p", { class: "found", "aria-live": "polite" }), create("div")];
  const key = create("p", { class: "key" });
  root.replaceChildren(create("p", { class: "sub" }, aboutAnswers), filters.element, summary, list, key);

  const actions: PageActions = {
    saveLabel: source.saveLabel,
    turnTo(page) {
      select({ page });
      focusOn(root);
    },
    searchMore() {
      limit += searchedRows;
      update();
    },
  };

  const show = async (isCurrent: () => boolean): Promise<void> => {
    const all = await source.measurements();
    if (!isCurrent()) return;
    if (all.length === 0) return void (summary.textContent = "No answers are stored yet.");
    const chosen = filters.fillMeasurements(all, selection);
    const wanted = { ...selection, phase: chosen.phase, id: chosen.id, step: String(chosen.step) };
    here = { phase: wanted.phase, id: wanted.id, step: wanted.step };
    const next = JSON.stringify([wanted, limit, wanted.item === "" ? chosen.total : totalsOf(all, chosen)]);
    if (next === shown) return;
    filters.element.classList.toggle("is-item", wanted.item !== "");
    const { rowsOf, checks } = checkedRows(source, limit);
    const view = await (wanted.item === ""
      ? rowsOf(chosen).then((read) => {
          if (isCurrent()) {
            const isGraded =
              source.saveLabel !== null && chosen.declared.grades?.includes("aligned") === true;
            filters.fillAnswers(read.rows, wanted, isGraded);
            key.textContent = wordsKey(chosen.declared, read.rows);
          }
          return pageView(read, chosen, wanted, actions);
        })
      : itemView(all, wanted, rowsOf));
    if (!isCurrent()) return;
    shown = next;
    list.replaceChildren(...view.content);
    summary.textContent = checks.length === 0 ? view.text : `${view.text} · being verified`;
    await Promise.all(checks);
    if (isCurrent()) summary.textContent = view.text;
  };

  const update = latest(show, (message) => {
    shown = "";
    summary.textContent = message;
    list.replaceChildren();
  });
  onHash("answers", noSelection, root, (next) => {
    selection = next;
    update();
  });
  update();
  return { update };
}

const totalsOf = (all: readonly MeasurementAnswers[], { id }: MeasurementAnswers): readonly number[] =>
  all.filter((entry) => entry.id === id).map(({ total }) => total);

/** Reads rows, and collects the verifications that the server has not finished yet. */
function checkedRows(source: AnswersSource, limit: number) {
  const checks: Promise<unknown>[] = [];
  const rowsOf = async (measurement: MeasurementAnswers): Promise<ReadAnswers> => {
    const read = await source.rows(measurement, limit);
    if (read.verified !== null) checks.push(read.verified);
    return read;
  };
  return { rowsOf, checks };
}

/** The started parts of the page, by their element. All of them share the rows that were read. */
const started = new WeakMap<HTMLElement, { readonly update: () => void }>();
let source: AnswersSource | null = null;

/** Shows all answers of a run. On a page that was updated, shows new measurements and keeps what the reader selected. */
export function startAnswers(): void {
  const data = readDataBlock<AnswersData>("answers-data");
  if (data === null || !("DecompressionStream" in window)) return;
  if (source === null) source = answersSource(data);
  else source.replace(data);
  start("[data-answers]", (root) => browseAnswers(root, source!));
  start("[data-questions]", (root) => browseQuestions(root, source!));
  start("[data-scores]", (root) => browseScores(root, source!));
  // Without a script, these links lead to the section.
  for (const link of document.querySelectorAll("[data-select]"))
    link.setAttribute("href", link.getAttribute("data-select")!);
}

function start(selector: string, browse: (root: HTMLElement) => { readonly update: () => void }): void {
  for (const root of document.querySelectorAll<HTMLElement>(selector)) {
    const earlier = started.get(root);
    if (earlier === undefined) started.set(root, browse(root));
    else earlier.update();
  }
}
