import { create } from "../dom.ts";
import { linkTo, selectionFrom, type AnswerSelection } from "./answer-selection.ts";
import { flagKey } from "../../page-data/answer-text.ts";
import { itemView, messageOf, pageView, type PageActions } from "./answers-pages.ts";
import { filterControls } from "./filter-controls.ts";
import { focusOn, onHash, readHash, writeHash } from "./selection.ts";
import type { AnswersSource } from "./source.ts";

/** Rows of one measurement that are searched at first. */
const searchedRows = 5000;

/** Replaces the first answers by all answers, with filters, a search and pages. */
export function browseAnswers(place: HTMLElement, source: AnswersSource): { readonly update: () => void } {
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
  const found = create("p", { class: "found", "aria-live": "polite" });
  const list = create("div");
  const about = "Every answer of every measurement. The address of this page holds the selection.";
  place.replaceChildren(
    create("p", { class: "sub" }, about),
    filters.element,
    found,
    list,
    create("p", { class: "key" }, flagKey),
  );

  const actions: PageActions = {
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
    const totals = all.filter(({ id }) => id === one.id).map(({ total }) => total);
    const next = JSON.stringify([wanted, limit, wanted.item === "" ? one.total : totals]);
    if (next === shown) return;
    filters.element.classList.toggle("is-item", wanted.item !== "");
    const view = await (wanted.item === ""
      ? source.rows(one, limit).then((read) => {
          if (isCurrent()) filters.fillAnswers(read.rows, wanted);
          return pageView(read, wanted, actions);
        })
      : itemView(all, wanted, (measurement) => source.rows(measurement, limit)));
    if (!isCurrent()) return;
    shown = next;
    found.textContent = view.text;
    list.replaceChildren(...view.content);
  };

  onHash("answers", place, (parameters) => {
    selection = selectionFrom(parameters);
    update();
  });
  update();
  return { update };
}
