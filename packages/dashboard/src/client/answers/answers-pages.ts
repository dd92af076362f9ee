import {
  isAnchor,
  type AnswerLabel,
  type MeasurementAnswers,
  type AnswerRow,
} from "../../page-data/answers-data.ts";
import { evenly } from "../../page-data/run-data.ts";
import { html } from "../../html/html.ts";
import { create, elementOf, messageOf, save } from "../dom.ts";
import { button } from "./controls.ts";
import { matches, questionOf, shownKind, worstFirst } from "./answer-filters.ts";
import { linkTo, type AnswerSelection } from "./answer-selection.ts";
import { answerView, stepsView, type AnswerAtStep } from "./answer-view.ts";
import { agreementText } from "./scores.ts";
import type { AnswersSource, ReadAnswers, SaveLabel } from "./source.ts";

/** A part of the page: what it shows in one sentence, and its content. */
export interface View {
  readonly text: string;
  readonly content: readonly HTMLElement[];
}

/** The actions of the buttons and lists of the answers. */
export interface PageActions {
  readonly turnTo: (page: number) => void;
  readonly searchMore: () => void;
  readonly saveLabel: SaveLabel | null;
}

const answersPerPage = 20;
/** Measurements whose answers are shown side by side. */
const maxSteps = 24;

/** Renders one page of the answers that match the selection. */
export function pageView(
  { rows, read, total, labelsProblem }: ReadAnswers,
  measurement: MeasurementAnswers,
  selection: AnswerSelection,
  { saveLabel, turnTo, searchMore }: PageActions,
): View {
  const { grades = [] } = measurement.declared;
  const agreement = create("p", { class: "key", role: "status" });
  const showAgreement = (): void => void (agreement.textContent = labelsProblem ?? agreementText(ofKind));
  const saveOf = (row: AnswerRow) =>
    saveLabel !== null && grades.includes("aligned") && !isAnchor(row)
      ? (label: AnswerLabel) => saveLabel(measurement, row, label).then(showAgreement)
      : null;
  const ofKind = shownKind(rows, selection.show);
  const matching = ofKind.filter((row) => matches(row, selection));
  const isLabelled = grades.includes("aligned") && (saveLabel !== null || rows.some(({ label }) => label));
  if (isLabelled || labelsProblem !== undefined) showAgreement();
  const isBlind = selection.order === "blind" && saveLabel !== null;
  const sorted = isBlind
    ? matching.toSorted((a, b) => a.sample - b.sample)
    : selection.order === "asked"
      ? matching
      : worstFirst(matching, measurement.declared);
  const pages = Math.max(1, Math.ceil(sorted.length / answersPerPage));
  const page = Math.min(selection.page, pages);
  const shown = sorted.slice((page - 1) * answersPerPage, page * answersPerPage);
  const onPage = pages > 1 ? ` · page ${page} of ${pages}` : "";
  return {
    text: `${matching.length} of ${ofKind.length} ${selection.show === "anchor" ? "anchors" : "answers"}${onPage}`,
    content: [
      ...(isLabelled ? [agreement] : []),
      ...shown.map((row) =>
        answerView(
          isBlind ? { ...row, flags: [], grades: [], judge: null, fields: [] } : row,
          linkTo({ ...selection, item: row.item, sample: row.sample }),
          measurement.example,
          saveOf(row),
          isBlind,
        ),
      ),
      elementOf(html`<p class="key print-only">
        Printed: ${shown.length} of the ${sorted.length} selected answers of ${measurement.phase}, ${measurement.id}, step ${measurement.step}.
        The page on a screen shows the other answers, and those of all other measurements.
      </p>`),
      ...(pages > 1 ? [pageButtons(page, pages, turnTo)] : []),
      ...(read < total
        ? [
            create(
              "p",
              { class: "key" },
              `The first ${read} of ${total} stored rows are searched. `,
              button("Search more", searchMore),
            ),
          ]
        : []),
      ...downloadOf(
        sorted.map((row) => ({ measurement, row })),
        [selection.phase, selection.id, "step", selection.step, selection.show],
      ),
    ],
  };
}

function pageButtons(page: number, pages: number, turnTo: PageActions["turnTo"]): HTMLElement {
  const turn = (to: number, text: string): HTMLElement => {
    const element = button(text, () => turnTo(to));
    element.disabled = to < 1 || to > pages;
    return element;
  };
  const here = create("span", {}, `page ${page} of ${pages}`);
  const attributes = { class: "turns", "aria-label": "Pages of answers" };
  return create("nav", attributes, turn(page - 1, "← Previous"), here, turn(page + 1, "Next →"));
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
  for (const measurement of shown) answers.push(await answerAt(measurement, selection, rowsOf));
  const row = answers.find((answer) => answer.row !== null)?.row ?? null;
  const count = shown.length < ofCallback.length ? `${shown.length} of ${ofCallback.length}` : shown.length;
  const who = [row?.persona ?? null, selection.sample > 0 ? `answer ${selection.sample + 1}` : null];
  const back = linkTo({ ...selection, item: "", sample: 0 });
  return {
    text: `The same question at ${count} measurements.`,
    content: [
      elementOf(html`<div>
        <p><a href="${back}">← All answers</a></p>
        <h3 class="asked">${row === null ? selection.item : questionOf(row)}</h3>
        <p class="about">${who.filter((part) => part !== null).join(" · ")}</p>
      </div>`),
      stepsView(answers, selection.marks),
      ...downloadOf(
        answers.flatMap(({ row }, at) => (row === null ? [] : [{ measurement: shown[at]!, row }])),
        [selection.id, selection.item],
      ),
    ],
  };
}

async function answerAt(
  measurement: MeasurementAnswers,
  { phase, step, item, sample }: AnswerSelection,
  rowsOf: (measurement: MeasurementAnswers) => ReturnType<AnswersSource["rows"]>,
): Promise<AnswerAtStep> {
  const title = `${measurement.phase} · step ${measurement.step}`;
  const isSelected = measurement.phase === phase && String(measurement.step) === step;
  try {
    const { rows } = await rowsOf(measurement);
    const row = rows.find((answer) => answer.item === item && answer.sample === sample) ?? null;
    return { title, phase: measurement.phase, isSelected, row, problem: null };
  } catch (error) {
    return { title, phase: measurement.phase, isSelected, row: null, problem: messageOf(error) };
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
  const file = `${name.filter((part) => part !== "").join("_")}.jsonl`;
  const download = button(text, () => {
    const lines = answers.map(
      ({ measurement: { phase, id, step }, row }) => `${JSON.stringify({ phase, id, step, ...row })}\n`,
    );
    save(new Blob(lines, { type: "application/jsonl" }), file);
  });
  return [create("p", { class: "download-answers" }, download)];
}
