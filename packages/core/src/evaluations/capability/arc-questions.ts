import { PeriodicEvalError, hashJson } from "@periodic-eval/contracts";
import { isRecord, abbreviated, quoteValue, isFilled } from "@periodic-eval/contracts/options";
import { jsonLines, type PlacedRow } from "@periodic-eval/data";

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
 * Parses JSONL of `{question, choice_labels, choices, correct_answer, id?}`, or of `{question, choices: {text, label}, answerKey,
 * id?}` as in `allenai/ai2_arc`, one object per line. Empty lines and further keys are ignored.
 *
 * @throws PeriodicEvalError `data` with file and line for the first wrong line; no line is skipped silently.
 */
export function parseArcQuestions(text: string, file: string): readonly ArcQuestion[] {
  const rows = jsonLines(text, file);
  if (rows.length > 0) return arcQuestionsOf(rows);
  throw badData(file, {
    got: text === "" ? "an empty file" : "only empty lines",
    expected: "one question per line",
    fix: "Check that the file was written completely.",
  });
}

/**
 * Returns the questions of rows in either format of `parseArcQuestions`.
 *
 * @throws PeriodicEvalError `data` with the place of the first wrong row.
 */
export const arcQuestionsOf = (rows: readonly PlacedRow[]): readonly ArcQuestion[] =>
  nameQuestions(rows.map(readRow));

const arcFix =
  "Name questions in the format of allenai/ai2_arc: question, choices.text, choices.label, answerKey.";

function readRow({ row, place }: PlacedRow): Unnamed {
  const record: Readonly<Record<string, unknown>> = row;
  // The format of allenai/ai2_arc.
  const isHub = "answerKey" in record;
  const field = <T>(
    name: string,
    expected: string,
    is: (value: unknown) => value is T,
    holder = record,
    path = name,
  ): T => {
    const value = holder[name];
    if (is(value)) return value;
    const isThere = name in holder;
    const got = isThere
      ? `${path} = ${shortened(value)}`
      : `no ${path} (keys: ${abbreviated(Object.keys(holder).join(", "), 200) || "none"})`;
    const fix = `${isThere ? `Correct "${path}" of the line.` : `Give the line a "${path}".`} ${arcFix}`;
    throw badData(place, { got, expected: `${path}: ${expected}`, fix });
  };
  const strings = "two or more non-empty strings";
  const question = field("question", "a non-empty string", isFilled);
  const listed = isHub ? field("choices", "an object of `text` and `label`", isRecord) : null;
  const labels =
    listed === null
      ? field("choice_labels", strings, isFilledArray)
      : field("label", strings, isFilledArray, listed, "choices.label");
  const choices =
    listed === null
      ? field("choices", strings, isFilledArray)
      : field("text", strings, isFilledArray, listed, "choices.text");
  const answer = isHub ? "answerKey" : "correct_answer";
  const gold = field(answer, "one of the labels", isFilled);
  const hasId = "id" in record && record["id"] !== null;
  const id = hasId ? String(field("id", "a non-empty string or an integer of at most 2⁵³ − 1", isId)) : null;
  checkLabels(place, labels, choices, { gold, answer, labelled: isHub ? "choices.label" : "choice_labels" });
  return { id, place, question, labels, choices, gold };
}

function checkLabels(
  where: string,
  labels: readonly string[],
  choices: readonly string[],
  { gold, answer, labelled }: { readonly gold: string; readonly answer: string; readonly labelled: string },
): void {
  if (labels.length !== choices.length)
    throw badData(where, {
      got: `${labels.length} ${labelled} and ${choices.length} choices`,
      expected: "as many labels as choices",
      fix: "Give every choice one label.",
    });
  const repeated = firstRepeated(labels);
  if (repeated !== undefined)
    throw badData(where, {
      got: `the label ${shortened(repeated)} twice`,
      expected: "unique labels",
      fix: "Rename one of the two labels.",
    });
  const same = firstRepeated(choices);
  if (same !== undefined)
    throw badData(where, {
      got: `the choice ${shortened(same)} twice`,
      expected: "choices that differ",
      fix: "Correct one of the two choices, or leave the question out.",
    });
  if (!labels.includes(gold))
    throw badData(where, {
      got: `${answer} = ${shortened(gold)}`,
      expected: `one of the labels ${labels.slice(0, 26).map(shortened).join(", ")}${labels.length > 26 ? ", …" : ""}`,
      fix: "Correct the answer or the labels of that line.",
    });
}

function firstRepeated(strings: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return strings.find((one) => seen.size === seen.add(one).size);
}

function nameQuestions(records: readonly Unnamed[]): readonly ArcQuestion[] {
  const seen = new Map<string, string>();
  const repeats = new Map<string, number>();
  return records.map(({ place, ...question }) => {
    const id = question.id ?? nextId(contentName(question), repeats);
    const earlier = seen.get(id);
    if (earlier !== undefined)
      throw badData(place, {
        got: `the id ${shortened(id)}, which ${earlier} already has`,
        expected: "unique ids",
        fix: "Rename one of the two, or remove the ids: they are then derived from the content.",
      });
    seen.set(id, place);
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

const isFilledArray = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length >= 2 && value.every(isFilled);
const isId = (value: unknown): value is string | number => isFilled(value) || Number.isSafeInteger(value);

const shortened = (value: unknown): string => quoteValue(value, 58);

const badData = (where: string, details: { got: string; expected: string; fix: string }): PeriodicEvalError =>
  new PeriodicEvalError({ code: "data", where, ...details });
