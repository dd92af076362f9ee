import { html, type Html } from "../../html/html.ts";
import { rowTable } from "../../html/table.ts";
import { create } from "../dom.ts";
import { distinct, latest, selectControl, type Choice } from "./controls.ts";
import {
  type MeasurementAnswers,
  hashOf,
  choiceText,
  questionChanges,
  type QuestionChange,
} from "../../page-data/answers-data.ts";
import { onHash, readSelection, writeHash } from "./answer-selection.ts";
import type { AnswersSource } from "./source.ts";

/** Two measurements of one callback; empty strings for the first and last one of the last phase. */
const noSelection = { id: "", from: "", to: "" };

/** Replaces the tables of changed questions by one table between any two measurements. */
export function browseQuestions(root: HTMLElement, source: AnswersSource): { readonly update: () => void } {
  let selection = readSelection("questions", noSelection) ?? noSelection;
  const select = (change: Partial<typeof noSelection>): void => {
    selection = { ...selection, ...change };
    writeHash(hashOf("questions", selection));
    update();
  };
  const callbacks = selectControl("Callback", (id) => select({ ...noSelection, id }));
  const froms = selectControl("From", (from) => select({ from }));
  const tos = selectControl("To", (to) => select({ to }));
  const summary = create("p", { class: "found", "aria-live": "polite" });
  const result = create("div");
  const filters = create("div", { class: "filters", role: "group", "aria-label": "Measurements to compare" });
  filters.append(...[callbacks, froms, tos].map(({ element }) => element));

  const show = async (isCurrent: () => boolean): Promise<void> => {
    const all = (await source.measurements()).filter(hasChoices);
    if (!isCurrent() || all.length === 0) return;
    root.replaceChildren(filters, summary, result);
    const ids = distinct(all.map(({ id }) => id));
    const id = callbacks.fill(
      ids.map((callback) => [callback, callback]),
      selection.id,
    );
    callbacks.element.hidden = ids.length < 2;
    const ofId = all.filter((entry) => entry.id === id);
    const lastPhase = ofId.filter(({ phase }) => phase === ofId.at(-1)!.phase);
    const choices = ofId.map((entry): Choice => [keyOf(entry), `${entry.phase} · step ${entry.step}`]);
    const chosenFrom = froms.fill(choices, selection.from || keyOf(lastPhase[0]!));
    const chosenTo = tos.fill(choices, selection.to || keyOf(lastPhase.at(-1)!));
    const [from, to] = [chosenFrom, chosenTo].map((key) => ofId.find((entry) => keyOf(entry) === key)!);
    const [before, after] = await Promise.all([source.rows(from!, Infinity), source.rows(to!, Infinity)]);
    // The server has read all rows at this point, so verifying them takes no longer.
    await Promise.all([before.verified, after.verified]);
    if (!isCurrent()) return;
    const changes = questionChanges(before.rows, after.rows);
    const count = (kind: QuestionChange["change"]) => changes.filter(({ change }) => change === kind).length;
    summary.textContent = `${count("forgotten")} forgotten, ${count("regained")} regained`;
    result.innerHTML = changes.length === 0 ? "" : tableOf(changes, from!, to!).markup;
  };

  const update = latest(show, (message) => {
    summary.textContent = message;
    result.replaceChildren();
  });
  onHash("questions", noSelection, root, (next) => {
    selection = next;
    update();
  });
  update();
  return { update };
}

const hasChoices = ({ declared }: MeasurementAnswers): boolean => declared.choices !== undefined;

const keyOf = ({ phase, step }: MeasurementAnswers): string => `${phase}:${step}`;

function tableOf(changes: readonly QuestionChange[], from: MeasurementAnswers, to: MeasurementAnswers): Html {
  const { phase, id, step } = to;
  const choiceAt = ({ phase: name, step: at }: MeasurementAnswers) => `Choice at step ${at} of ${name}`;
  return rowTable(
    "Forgotten and regained questions",
    changes,
    [
      [
        "Question",
        ({ item, question, persona }) =>
          html`<a href="${hashOf("answers", { phase, id, step, item })}">${question}</a>${persona !== null && html` <small>${persona}</small>`}`,
        "left",
      ],
      ["Change", ({ change }) => html`<span class="flag ${change}">${change}</span>`, "left text"],
      [choiceAt(from), ({ from: before }) => choiceText(before, before.predicted), "left text"],
      [choiceAt(to), ({ to: after }) => choiceText(after, after.predicted), "left text"],
      ["Right choice", ({ to: after }) => choiceText(after, after.gold), "left text"],
    ],
    { className: "changes", noun: "question", rank: (_row, at) => -at },
  );
}
