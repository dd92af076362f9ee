import { browseScores } from "./scores.ts";
import {
  wordsKey,
  flagName,
  type AnswersData,
  type MeasurementAnswers,
  type AnswerRow,
} from "../../page-data/answers-data.ts";
import { create, messageOf, readDataBlock } from "../dom.ts";
import { questionOf, shownKind } from "./answer-filters.ts";
import {
  linkTo,
  selectionFrom,
  type AnswerSelection,
  noSelection,
  type MarkedFrom,
  focusOn,
  onHash,
  readHash,
  writeHash,
} from "./answer-selection.ts";
import {
  itemView,
  pageView,
  type PageActions,
  distinct,
  selectControl,
  type Choice,
} from "./answers-pages.ts";
import { browseQuestions } from "./questions-browser.ts";
import { answersSource, type AnswersSource, type ReadAnswers } from "./source.ts";

/** The lists and the search field above the answers. */
interface FilterControls {
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
function filterControls(
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

const aboutAnswers = "Every answer of every measurement. The address of this page holds the selection.";

/** Rows of one measurement that are searched at first. */
const searchedRows = 5000;

/** Replaces the first answers by all answers, with filters, a search and pages. */
function browseAnswers(place: HTMLElement, source: AnswersSource): { readonly update: () => void } {
  let selection = selectionFrom(readHash("answers"));
  let limit = searchedRows;
  let turn = 0;
  /** Describes the shown list. An update that changes nothing of it leaves it as it is. */
  let shown = "";
  /** The measurement that is shown. */
  let here: Pick<AnswerSelection, "phase" | "id" | "step"> = selection;

  const select = (change: Partial<AnswerSelection>): void => {
    selection = { ...selection, ...here, page: 1, item: "", sample: 0, ...change };
    writeHash(linkTo(selection));
    update();
  };
  const filters = filterControls(select, (marks) => {
    const { item, sample } = selection;
    select({ item, sample, marks });
  });
  const [found, list] = [create("p", { class: "found", "aria-live": "polite" }), create("div")];
  const key = create("p", { class: "key" });
  place.replaceChildren(create("p", { class: "sub" }, aboutAnswers), filters.element, found, list, key);

  const actions: PageActions = {
    saveLabel: source.saveLabel,
    turnTo(page) {
      select({ page });
      focusOn(place);
    },
    searchMore() {
      limit += searchedRows;
      update();
    },
  };

  const update = (): void => {
    const mine = ++turn;
    void show(() => mine === turn).catch((error: unknown) => {
      if (mine !== turn) return;
      shown = "";
      found.textContent = messageOf(error);
      list.replaceChildren();
    });
  };

  const show = async (isCurrent: () => boolean): Promise<void> => {
    const all = await source.measurements();
    if (!isCurrent()) return;
    if (all.length === 0) return void (found.textContent = "No answers are stored yet.");
    const one = filters.fillMeasurements(all, selection);
    const wanted = { ...selection, phase: one.phase, id: one.id, step: String(one.step) };
    here = { phase: wanted.phase, id: wanted.id, step: wanted.step };
    const next = JSON.stringify([wanted, limit, wanted.item === "" ? one.total : totalsOf(all, one)]);
    if (next === shown) return;
    filters.element.classList.toggle("is-item", wanted.item !== "");
    const { rowsOf, checks } = checkedRows(source, limit);
    const view = await (wanted.item === ""
      ? rowsOf(one).then((read) => {
          if (isCurrent()) {
            filters.fillAnswers(read.rows, wanted);
            key.textContent = wordsKey(one.declared, read.rows);
          }
          return pageView(read, one, wanted, actions);
        })
      : itemView(all, wanted, rowsOf));
    if (!isCurrent()) return;
    shown = next;
    list.replaceChildren(...view.content);
    found.textContent = checks.length === 0 ? view.text : `${view.text} · being verified`;
    await Promise.all(checks);
    if (isCurrent()) found.textContent = view.text;
  };

  onHash("answers", place, (parameters) => {
    selection = selectionFrom(parameters);
    update();
  });
  update();
  return { update };
}

const totalsOf = (all: readonly MeasurementAnswers[], { id }: MeasurementAnswers): readonly number[] =>
  all.filter((one) => one.id === id).map(({ total }) => total);

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
  start("[data-answers]", (place) => browseAnswers(place, source!));
  start("[data-questions]", (place) => browseQuestions(place, source!));
  start("[data-scores]", (place) => browseScores(place, source!));
  // Without a script, these links lead to the section.
  for (const link of document.querySelectorAll("[data-select]"))
    link.setAttribute("href", link.getAttribute("data-select")!);
}

function start(selector: string, browse: (place: HTMLElement) => { readonly update: () => void }): void {
  for (const place of document.querySelectorAll<HTMLElement>(selector)) {
    const earlier = started.get(place);
    if (earlier === undefined) started.set(place, browse(place));
    else earlier.update();
  }
}
