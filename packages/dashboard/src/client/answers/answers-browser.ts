import { create } from "../dom.ts";
import { matches, questionOf, worstFirst, type AnswerFilters } from "./answer-filters.ts";
import { flagNames } from "./answer-text.ts";
import { answerView, stepsView, type AnswerAtStep } from "./answer-view.ts";
import type { AnswerFlag, AnswerRow, MeasurementAnswers } from "./answers-data.ts";
import { distinct, selectControl, type Choice } from "./controls.ts";
import { hashOf, readHash, writeHash } from "./selection.ts";
import type { AnswersSource, ReadAnswers } from "./source.ts";

/** What the page shows; its address holds it. */
interface Selection extends AnswerFilters {
  readonly phase: string;
  readonly id: string;
  /** A step as a string; empty for the last one. */
  readonly step: string;
  readonly order: "worst" | "asked";
  /** 1-based. */
  readonly page: number;
  /** The item whose answers at all steps are shown; empty for the list of answers. */
  readonly item: string;
  readonly sample: number;
}

const nothing: Selection = {
  ...{ phase: "", id: "", step: "", show: "", persona: "", question: "", text: "" },
  ...{ order: "worst", page: 1, item: "", sample: 0 },
};

const answersPerPage = 20;
/** Rows of one measurement that are searched at first. */
const searchedRows = 5000;
/** Steps that are shown side by side. */
const maxSteps = 24;
const maxQuestions = 1000;

/** Replaces the first answers by all answers, with filters, a search and pages. */
export function browseAnswers(place: HTMLElement, source: AnswersSource): { readonly update: () => void } {
  let selection = selectionFrom(readHash("answers"));
  let limit = searchedRows;
  let turn = 0;

  const select = (change: Partial<Selection>): void => {
    selection = { ...selection, page: 1, item: "", ...change };
    writeHash(linkTo(selection));
    update();
  };
  const callbacks = selectControl("Callback", (key) => {
    const [phase, id] = JSON.parse(key) as readonly [string, string];
    select({ ...nothing, phase, id, order: selection.order });
  });
  const steps = selectControl("Step", (step) => select({ step }));
  const shows = selectControl("Show", (show) => select({ show: show as AnswerFlag | "" }));
  const personas = selectControl("Persona", (persona) => select({ persona }));
  const questions = selectControl("Question", (question) => select({ question }));
  const orders = selectControl("Order", (order) => select({ order: order === "asked" ? "asked" : "worst" }));
  const search = create("input", { type: "search", autocomplete: "off", spellcheck: "false" });
  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = window.setTimeout(() => select({ text: search.value }), 200);
  });
  const found = create("p", { class: "found", "aria-live": "polite" });
  const list = create("div");
  const filters = create(
    "div",
    { class: "filters", role: "search", "aria-label": "Answers" },
    ...[callbacks, steps, shows, personas, questions, orders].map(({ element }) => element),
    create("label", {}, create("span", {}, "Search"), search),
  );
  place.replaceChildren(filters, found, list);

  const update = (): void => {
    const mine = ++turn;
    const isCurrent = (): boolean => mine === turn;
    void show(isCurrent).catch((error: unknown) => {
      if (!isCurrent()) return;
      found.textContent = error instanceof Error ? error.message : String(error);
      list.replaceChildren();
    });
  };

  /** Fills the lists of the measurements, and returns the selected one. */
  const measurementOf = (all: readonly MeasurementAnswers[]): MeasurementAnswers => {
    const keys = distinct(all.map(({ phase, id }) => JSON.stringify([phase, id])));
    const choices = keys.map((key): Choice => [key, (JSON.parse(key) as string[]).join(" · ")]);
    const lastPhase = all.at(-1)!.phase;
    const first = all.find(({ phase }) => phase === lastPhase)!;
    const isKnown = all.some(({ phase, id }) => phase === selection.phase && id === selection.id);
    const { phase, id } = isKnown ? selection : first;
    callbacks.fill(choices, JSON.stringify([phase, id]));
    const ofCallback = all.filter((one) => one.phase === phase && one.id === id);
    const last = ofCallback.at(-1)!;
    const one = ofCallback.find(({ step }) => String(step) === selection.step) ?? last;
    const stepChoices = ofCallback.map(({ step, total }): Choice => [String(step), `${step} (${total})`]);
    steps.fill(stepChoices, String(one.step));
    return one;
  };

  const show = async (isCurrent: () => boolean): Promise<void> => {
    const all = await source.measurements();
    if (!isCurrent()) return;
    if (all.length === 0) return void (found.textContent = "No answers are stored yet.");
    const one = measurementOf(all);
    const here = { ...selection, phase: one.phase, id: one.id, step: String(one.step) };
    filters.classList.toggle("is-item", here.item !== "");
    if (here.item !== "") return showItem(all, here, isCurrent);
    list.setAttribute("aria-busy", "true");
    const read = await source.rows(one, limit);
    if (!isCurrent()) return;
    list.removeAttribute("aria-busy");
    fillFilters(read.rows);
    const kept = read.rows.filter((row) => matches(row, selection));
    const sorted = selection.order === "worst" ? worstFirst(kept) : kept;
    showPage(sorted, read, here);
  };

  const fillFilters = (rows: readonly AnswerRow[]): void => {
    const counted = (Object.keys(flagNames) as AnswerFlag[])
      .map((flag) => ({ flag, count: rows.filter(({ flags }) => flags.includes(flag)).length }))
      .filter(({ flag, count }) => count > 0 || flag === selection.show)
      .map(({ flag, count }): Choice => [flag, `${flagNames[flag]} (${count})`]);
    const people = distinct(rows.flatMap(({ persona }) => persona ?? []));
    const asked = distinct(rows.map(questionOf)).slice(0, maxQuestions);
    const withChosen = (values: readonly string[], chosen: string): readonly Choice[] =>
      (chosen === "" || values.includes(chosen) ? values : [...values, chosen]).map((one) => [one, one]);
    shows.fill([["", `all (${rows.length})`], ...counted], selection.show);
    personas.fill([["", "all"], ...withChosen(people, selection.persona)], selection.persona);
    questions.fill([["", "all"], ...withChosen(asked, selection.question)], selection.question);
    orders.fill(
      [
        ["worst", "worst first"],
        ["asked", "as asked"],
      ],
      selection.order,
    );
    personas.element.hidden = people.length === 0;
    if (document.activeElement !== search) search.value = selection.text;
  };

  const showPage = (
    rows: readonly AnswerRow[],
    { read, total, rows: of }: ReadAnswers,
    here: Selection,
  ): void => {
    const pages = Math.max(1, Math.ceil(rows.length / answersPerPage));
    const page = Math.min(selection.page, pages);
    const shown = rows.slice((page - 1) * answersPerPage, page * answersPerPage);
    found.textContent = `${rows.length} of ${of.length} answers${pages > 1 ? ` · page ${page} of ${pages}` : ""}`;
    const more = create("p", { class: "key" });
    if (read < total) {
      const button = create("button", { type: "button" }, `Search ${searchedRows} more`);
      button.addEventListener("click", () => {
        limit += searchedRows;
        update();
      });
      more.append(`The first ${read} of ${total} answers are searched. `, button);
    }
    const link = ({ item, sample }: AnswerRow): string => linkTo({ ...here, item, sample });
    const turnTo = (to: number, text: string): HTMLElement => {
      const button = create("button", { type: "button" }, text);
      button.disabled = to < 1 || to > pages;
      button.addEventListener("click", () => {
        select({ page: to });
        place.scrollIntoView();
      });
      return button;
    };
    const turns = create("nav", { class: "turns", "aria-label": "Pages of answers" });
    if (pages > 1)
      turns.append(
        turnTo(page - 1, "← Previous"),
        create("span", {}, `page ${page} of ${pages}`),
        turnTo(page + 1, "Next →"),
      );
    list.replaceChildren(...shown.map((row) => answerView(row, link(row))), turns, more);
  };

  const showItem = async (
    all: readonly MeasurementAnswers[],
    here: Selection,
    isCurrent: () => boolean,
  ): Promise<void> => {
    const ofId = all.filter(({ id }) => id === here.id);
    const chosen = evenly(ofId, maxSteps);
    const answers: AnswerAtStep[] = [];
    for (const one of chosen) {
      answers.push(await answerAt(one, here));
      if (!isCurrent()) return;
    }
    const row = answers.find((answer) => answer.row !== null)?.row ?? null;
    const counted =
      chosen.length < ofId.length ? `${chosen.length} of ${ofId.length}` : String(chosen.length);
    found.textContent = `The same question at ${counted} measurements. Marked: what differs from the measurement before.`;
    const back = create("a", { href: linkTo({ ...here, item: "", sample: 0 }) }, "← All answers");
    const about = row === null ? here.item : questionOf(row);
    const who = [row?.persona ?? null, here.sample > 0 ? `answer ${here.sample + 1}` : null];
    const title = create("h3", { class: "asked" }, about);
    list.replaceChildren(
      create("p", {}, back),
      title,
      create("p", { class: "about" }, who.filter((part) => part !== null).join(" · ")),
      stepsView(answers),
    );
  };

  const answerAt = async (one: MeasurementAnswers, { item, sample }: Selection): Promise<AnswerAtStep> => {
    const title = `${one.phase} · step ${one.step}`;
    try {
      const { rows } = await source.rows(one, limit);
      const row = rows.find((answer) => answer.item === item && answer.sample === sample) ?? null;
      return { title, row, problem: null };
    } catch (error) {
      return { title, row: null, problem: error instanceof Error ? error.message : String(error) };
    }
  };

  window.addEventListener("hashchange", () => {
    const parameters = readHash("answers");
    if (parameters === null) return;
    selection = selectionFrom(parameters);
    update();
    focusOn(place);
  });
  update();
  if (readHash("answers") !== null) focusOn(place);
  return { update };
}

/** Moves the view and the keyboard to a part of the page that a link leads to. */
export function focusOn(place: HTMLElement): void {
  place.tabIndex = -1;
  place.focus({ preventScroll: true });
  (place.closest("section") ?? place).scrollIntoView();
}

function linkTo(selection: Selection): string {
  const { order, page, sample, ...others } = selection;
  const unusual = {
    order: order === "worst" ? "" : order,
    page: page === 1 ? "" : page,
    sample: sample === 0 ? "" : sample,
  };
  return hashOf("answers", { ...others, ...unusual });
}

function selectionFrom(parameters: URLSearchParams | null): Selection {
  if (parameters === null) return nothing;
  const text = (name: string): string => parameters.get(name) ?? "";
  const count = (name: string, least: number): number =>
    Math.max(least, Math.trunc(Number(text(name))) || least);
  const show = text("show");
  return {
    phase: text("phase"),
    id: text("id"),
    step: text("step"),
    show: Object.hasOwn(flagNames, show) ? (show as AnswerFlag) : "",
    persona: text("persona"),
    question: text("question"),
    text: text("text"),
    order: text("order") === "asked" ? "asked" : "worst",
    page: count("page", 1),
    item: text("item"),
    sample: count("sample", 0),
  };
}

/** Returns at most `count` items, evenly spaced, with the first and the last. */
function evenly<T>(items: readonly T[], count: number): readonly T[] {
  if (items.length <= count) return items;
  return Array.from(
    { length: count },
    (_, at) => items[Math.round((at * (items.length - 1)) / (count - 1))]!,
  );
}
