import type { Json } from "../../contracts/json.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { isRecord } from "../../internal/is-record.ts";
import { quoteValue } from "../../internal/quote-value.ts";
import { hashJson } from "../../random/hash.ts";
import { nestedSubset } from "../kit/subset.ts";
import { readHashed } from "../prompting/data-file.ts";

/** A multiple-choice question in the ARC format. */
export interface ArcQuestion {
  /**
   * The line's `id` if it has one; else `q-` and 12 hexadecimal digits of a hash over question, labels, choices and answer, so
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

type Unnamed = Omit<ArcQuestion, "id"> & { readonly id: string | null; readonly line: number };

/**
 * Parses JSONL of `{question, choice_labels, choices, correct_answer, id?}`, one object per line. Empty lines and further keys
 * are ignored.
 *
 * @throws PeriodicEvalError `data` with file and line for the first wrong line; no line is skipped silently.
 */
export function parseArcQuestions(text: string, file: string): readonly ArcQuestion[] {
  const lines = text
    .split(/\r?\n/)
    .flatMap((line, at) => (line.trim() === "" ? [] : [parseLine(line, `${file}:${at + 1}`, at + 1)]));
  if (lines.length > 0) return nameQuestions(lines, file);
  throw badData(file, {
    got: text === "" ? "an empty file" : "only empty lines",
    expected: "one question per line",
    fix: "Check that the file was written completely.",
  });
}

function parseLine(line: string, where: string, number: number): Unnamed {
  const record = parseRecord(line, where);
  const field = <T>(name: string, expected: string, is: (value: unknown) => value is T): T => {
    const value = record[name];
    if (is(value)) return value;
    const got =
      name in record
        ? `${name} = ${shortened(value)}`
        : `no ${name} (keys: ${Object.keys(record).join(", ") || "none"})`;
    throw badData(where, { got, expected: `${name}: ${expected}`, fix: `Give the line a "${name}".` });
  };
  const strings = "two or more non-empty strings";
  const question = field("question", "a non-empty string", isFilled);
  const labels = field("choice_labels", strings, isFilledArray);
  const choices = field("choices", strings, isFilledArray);
  const gold = field("correct_answer", "one of the labels", isFilled);
  const hasId = "id" in record && record["id"] !== null;
  const id = hasId ? String(field("id", "a non-empty string or an integer", isId)) : null;
  checkLabels(where, labels, choices, gold);
  return { id, line: number, question, labels, choices, gold };
}

function parseRecord(line: string, where: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw badData(where, {
      got: `invalid JSON (${errorMessage(cause)})`,
      expected: "a JSON object",
      fix: "Write one JSON object per line (JSONL), without commas between lines.",
      cause,
    });
  }
  if (isRecord(value)) return value;
  throw badData(where, {
    got: shortened(value),
    expected: "a JSON object",
    fix: "Write one JSON object per line (JSONL).",
  });
}

function checkLabels(
  where: string,
  labels: readonly string[],
  choices: readonly string[],
  gold: string,
): void {
  if (labels.length !== choices.length)
    throw badData(where, {
      got: `${labels.length} choice_labels and ${choices.length} choices`,
      expected: "as many labels as choices",
      fix: "Give every choice one label.",
    });
  const repeated = labels.find((label, at) => labels.indexOf(label) !== at);
  if (repeated !== undefined)
    throw badData(where, {
      got: `the label ${shortened(repeated)} twice`,
      expected: "unique labels",
      fix: "Rename one of the two labels.",
    });
  if (!labels.includes(gold))
    throw badData(where, {
      got: `correct_answer = ${shortened(gold)}`,
      expected: `one of the labels ${labels.map(shortened).join(", ")}`,
      fix: "Correct the answer or the labels of that line.",
    });
}

function nameQuestions(lines: readonly Unnamed[], file: string): readonly ArcQuestion[] {
  const seen = new Map<string, number>();
  const repeats = new Map<string, number>();
  return lines.map(({ line, ...question }) => {
    const id = question.id ?? nextId(contentName(question), repeats);
    const earlier = seen.get(id);
    if (earlier !== undefined)
      throw badData(`${file}:${line}`, {
        got: `the id ${shortened(id)}, which line ${earlier} already has`,
        expected: "unique ids",
        fix: "Rename one of the two, or remove the ids: they are then derived from the content.",
      });
    seen.set(id, line);
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

const isFilled = (value: unknown): value is string => typeof value === "string" && value.trim() !== "";
const isFilledArray = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length >= 2 && value.every(isFilled);
const isId = (value: unknown): value is string | number => isFilled(value) || Number.isSafeInteger(value);

const shortened = (value: unknown): string => quoteValue(value, 58);

const badData = (
  where: string,
  details: { got: string; expected: string; fix: string; cause?: unknown },
): PeriodicEvalError => new PeriodicEvalError({ code: "data", where, ...details });

/** Which questions of a file are used: the first n in the seeded order. Null: all of them. */
export type Subsample = { readonly n: number; readonly seed: number } | null;

/** Reads the questions, in the order in which a smaller budget uses them. */
export type QuestionSource = () => Promise<{
  readonly items: readonly ArcQuestion[];
  readonly provenance: { readonly [key: string]: Json };
}>;

/** Seed of the order if all questions are used: a budget may still reduce them. */
const seedOfAll = 42;

/**
 * Returns a source of questions from a file in the ARC format. Subsets with one seed are nested; 200 of 1,172 with seed 42 are
 * Python's `random.Random(42).sample(range(1172), 200)`. A file of fewer than n questions is used whole.
 *
 * @param where Names the option that holds the path, for the error of an unreadable file.
 */
export function questionFile(path: string, subsample: Subsample, where: string): QuestionSource {
  return async () => {
    const { questions, sha256: hash } = await readQuestions(path, where);
    return {
      items: nestedSubset(questions, subsample ?? { n: null, seed: seedOfAll }),
      provenance: { file_sha256: hash, file_questions: questions.length, subsample },
    };
  };
}

/** Reads all questions of a file, in its order, and the SHA-256 of its text. */
export async function readQuestions(
  path: string,
  where: string,
): Promise<{ readonly questions: readonly ArcQuestion[]; readonly sha256: string }> {
  const { text, sha256 } = await readHashed(path, where);
  return { questions: parseArcQuestions(text, path), sha256 };
}
