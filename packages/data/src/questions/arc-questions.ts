import { hashJson, type Json, type SourceOption } from "@periodic-eval/contracts";
import {
  dataError,
  fieldText,
  isFilled,
  isFilledList,
  isRecord,
  shortened,
} from "@periodic-eval/contracts/options";
import type { PlacedRow } from "../rows/rows.ts";
import { readSource } from "../sources/read-source.ts";
import { uniqueIds } from "./question-fields.ts";

/** A multiple-choice question in the ARC format. */
export interface ArcQuestion {
  /**
   * The line's or row's `id` if it has one; else `q-` and 12 hexadecimal digits of a hash over question, labels, choices and answer, so
   * that a question keeps its id when lines are added, removed or reordered. Exact repetitions get `.2`, `.3`, ….
   */
  readonly id: string;
  readonly question: string;
  readonly labels: readonly string[];
  /** One string per label. */
  readonly choices: readonly string[];
  /** The right label. */
  readonly gold: string;
}

type Unnamed = Omit<ArcQuestion, "id"> & { readonly id: string | null; readonly place: string };

/**
 * Reads rows of `{question, choice_labels, choices, correct_answer, id?}`, or of `{question, choices: {text, label}, answerKey, id?}`
 * as in `allenai/ai2_arc`. Further keys are ignored.
 *
 * @throws PeriodicEvalError `data` at the place of the first wrong row; no row is skipped silently.
 */
export const questionsOf = (rows: readonly PlacedRow[]): readonly ArcQuestion[] =>
  nameQuestions(rows.map(readRow));

const arcFix =
  'Name questions in the format of allenai/ai2_arc: question, choices.text, choices.label, "answerKey".';

/**
 * Reads a row of either format.
 *
 * @throws PeriodicEvalError `data` at the row's place for a wrong field.
 */
export function readArcRow({ row, place }: PlacedRow): Unnamed {
  // The format of allenai/ai2_arc.
  const isHub = "answerKey" in row;
  const field = <T>(
    name: string,
    expected: string,
    is: (value: unknown) => value is T,
    holder: Readonly<Record<string, unknown>> = row,
    path = name,
  ): T => {
    const value = holder[name];
    if (is(value)) return value;
    const fix = `${name in holder ? `Correct "${path}" of the line.` : `Give the line a "${path}".`} ${arcFix}`;
    throw dataError(place, fieldText(holder, name, path), `${path}: ${expected}`, fix);
  };
  const strings = "two or more non-empty strings";
  const question = field("question", "a non-empty string", isFilled);
  const listed = isHub ? field("choices", "an object of `text` and `label`", isRecord) : null;
  const [labels, choices] =
    listed === null
      ? [field("choice_labels", strings, isChoices), field("choices", strings, isChoices)]
      : [
          field("label", strings, isChoices, listed, "choices.label"),
          field("text", strings, isChoices, listed, "choices.text"),
        ];
  const answer = isHub ? "answerKey" : "correct_answer";
  const gold = field(answer, "one of the labels", isFilled);
  const hasId = "id" in row && row["id"] !== null;
  const id = hasId ? String(field("id", "a non-empty string or an integer of at most 2⁵³ − 1", isId)) : null;
  const refuse = (got: string, expected: string, fix: string) => {
    throw dataError(place, got, expected, fix);
  };
  if (labels.length !== choices.length) {
    const got = `${labels.length} ${isHub ? "choices.label" : "choice_labels"} and ${choices.length} choices`;
    refuse(got, "as many labels as choices", "Give every choice one label.");
  }
  if (!labels.includes(gold)) {
    const known = `${labels.slice(0, 26).map(shortened).join(", ")}${labels.length > 26 ? ", …" : ""}`;
    const fix = "Correct the answer or the labels of that line.";
    refuse(`${answer} = ${shortened(gold)}`, `one of the labels ${known}`, fix);
  }
  return { id, place, question, labels, choices, gold };
}

/** Reads a row whose labels and choices must differ. */
function readRow(placed: PlacedRow): Unnamed {
  const question = readArcRow(placed);
  const { place, labels, choices } = question;
  const [label, choice] = [firstRepeated(labels), firstRepeated(choices)];
  if (label !== undefined)
    throw dataError(
      place,
      `the label ${shortened(label)} twice`,
      "unique labels",
      "Rename one of the two labels.",
    );
  if (choice !== undefined) {
    const fix = "Correct one of the two choices, or leave the question out.";
    throw dataError(place, `the choice ${shortened(choice)} twice`, "choices that differ", fix);
  }
  return question;
}

function firstRepeated(strings: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return strings.find((text) => seen.size === seen.add(text).size);
}

function nameQuestions(records: readonly Unnamed[]): readonly ArcQuestion[] {
  const check = uniqueIds(
    "Rename one of the two, or remove the ids: they are then derived from the content.",
  );
  const repeats = new Map<string, number>();
  return records.map(({ place, ...question }) => {
    const id = question.id ?? nextId(contentName(question), repeats);
    check(id, place);
    return { ...question, id };
  });
}

function nextId(stem: string, repeats: Map<string, number>): string {
  const count = (repeats.get(stem) ?? 0) + 1;
  repeats.set(stem, count);
  return count === 1 ? stem : `${stem}.${count}`;
}

function contentName({ question, labels, choices, gold }: Omit<ArcQuestion, "id">): string {
  return `q-${hashJson([question, labels, choices, gold]).replace(/^.*:/, "").slice(0, 12)}`;
}

const isChoices = (value: unknown): value is readonly string[] => isFilledList(value) && value.length >= 2;
const isId = (value: unknown): value is string | number => isFilled(value) || Number.isSafeInteger(value);

export interface SourceQuestions {
  readonly questions: readonly ArcQuestion[];
  readonly sha256: string;
  /** The dataset that holds the questions; null for a file. */
  readonly hub: { readonly [key: string]: Json } | null;
}

/**
 * Reads all questions of a source, in its order, and the SHA-256 of its content.
 *
 * @param option The option that holds the source, for errors; or only its place.
 * @throws PeriodicEvalError `data` for a source that cannot be read, or the first wrong question.
 */
export async function readQuestions(source: string, option: SourceOption | string): Promise<SourceQuestions> {
  const { rows, sha256, hub } = await readSource(source, option);
  return { questions: questionsOf(rows), sha256, hub };
}
