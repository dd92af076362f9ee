import { create } from "../dom.ts";
import { linkTo, selectionFrom, type AnswerSelection } from "./answer-selection.ts";
import { wordsKey } from "../../page-data/answer-text.ts";
import { itemView, messageOf, pageView, type PageActions } from "./answers-pages.ts";
import { filterControls } from "./filter-controls.ts";
import { focusOn, onHash, readHash, writeHash } from "./selection.ts";
import type { MeasurementAnswers } from "../../page-data/answers-data.ts";
import type { AnswersSource, ReadAnswers } from "./source.ts";

const aboutAnswers = "Every answer of every measurement. The address of this page holds the selection.";

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
  const [found, list] = [create("p", { class: "found", "aria-live": "polite" }), create("div")];
  const key = create("p", { class: "key" });
  place.replaceChildren(create("p", { class: "sub" }, aboutAnswers), filters.element, found, list, key);

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
