import { PeriodicEvalError } from "../../errors.ts";
import { hashJson } from "../../random/hash.ts";

/** A multiple-choice question in the ARC format. */
export interface ArcQuestion {
  /**
   * `id` of the line where it has one; else `q-` and 12 hexadecimal digits of a hash over question, labels, choices and
   * answer, so that a question keeps its id, and pairs with itself, when lines are added, removed or reordered. A line
   * that repeats another word for word gets `.2`, `.3`, ….
   */
  readonly id: string;
  readonly question: string;
  readonly labels: readonly string[];
  /** One text per label. */
  readonly choices: readonly string[];
  /** The right label. */
  readonly gold: string;
}

type Unnamed = Omit<ArcQuestion, "id"> & { readonly id: string | null; readonly line: number };

/**
 * Parses JSONL of `{question, choice_labels, choices, correct_answer, id?}`, one object a line, empty lines passed
 * over, further keys ignored. A file whose every line is right, or a `data` error that names file, line, got, expected
 * and fix: nothing is skipped in silence.
 */
export function parseArcQuestions(text: string, file: string): readonly ArcQuestion[] {
  const lines = text
    .split(/\r?\n/)
    .flatMap((line, at) => (line.trim() === "" ? [] : [parseLine(line, file, at + 1)]));
  if (lines.length === 0) {
    throw wrong(
      file,
      null,
      text === "" ? "an empty file" : "only empty lines",
      "one question a line",
      "Check that the file was written whole.",
    );
  }
  return nameQuestions(lines, file);
}

function parseLine(line: string, file: string, number: number): Unnamed {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    const fix = "Write one JSON object a line (JSONL), with no commas between lines.";
    throw wrong(
      file,
      number,
      `text that is no JSON (${(cause as Error).message})`,
      "a JSON object",
      fix,
      cause,
    );
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw wrong(file, number, show(value), "a JSON object", "Write one JSON object a line (JSONL).");
  }
  const record = value as Readonly<Record<string, unknown>>;
  const field = <T>(name: string, expected: string, is: (value: unknown) => value is T): T => {
    if (is(record[name])) return record[name];
    const got =
      name in record
        ? `${name} = ${show(record[name])}`
        : `no ${name} (keys: ${Object.keys(record).join(", ") || "none"})`;
    throw wrong(file, number, got, expected, `Give the line a "${name}".`);
  };
  const question = field("question", "question: a text that is not empty", isFilled);
  const labels = field("choice_labels", "choice_labels: two or more texts, none empty", isFilledList);
  const choices = field("choices", "choices: two or more texts, none empty", isFilledList);
  const gold = field("correct_answer", "correct_answer: one of the labels", isFilled);
  const id =
    "id" in record && record["id"] !== null
      ? field("id", "id: a text that is not empty, or a number", isId)
      : null;
  if (labels.length !== choices.length) {
    const got = `${labels.length} choice_labels and ${choices.length} choices`;
    throw wrong(file, number, got, "as many labels as choices", "Give every choice its label.");
  }
  const repeated = labels.find((label, at) => labels.indexOf(label) !== at);
  if (repeated !== undefined) {
    throw wrong(
      file,
      number,
      `the label ${show(repeated)} twice`,
      "labels that differ",
      "Rename one of the two labels.",
    );
  }
  if (!labels.includes(gold)) {
    const expected = `one of the labels ${labels.map(show).join(", ")}`;
    throw wrong(
      file,
      number,
      `correct_answer = ${show(gold)}`,
      expected,
      "Correct the answer or the labels of that line.",
    );
  }
  return { id: id === null ? null : String(id), line: number, question, labels, choices, gold };
}

function nameQuestions(lines: readonly Unnamed[], file: string): readonly ArcQuestion[] {
  const seen = new Map<string, number>();
  const repeats = new Map<string, number>();
  const named: ArcQuestion[] = [];
  for (const { line, ...question } of lines) {
    const id = question.id ?? nextId(contentName(question), repeats);
    const earlier = seen.get(id);
    if (earlier !== undefined) {
      const got = `the id ${show(id)}, which line ${earlier} has already`;
      throw wrong(
        file,
        line,
        got,
        "ids that differ",
        "Rename one of the two, or leave the ids out: they are then made from the content.",
      );
    }
    seen.set(id, line);
    named.push({ ...question, id });
  }
  return named;
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
const isFilledList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length >= 2 && value.every(isFilled);
const isId = (value: unknown): value is string | number => isFilled(value) || Number.isSafeInteger(value);

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

function wrong(
  file: string,
  line: number | null,
  got: string,
  expected: string,
  fix: string,
  cause?: unknown,
): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "data",
    where: line === null ? file : `${file}:${line}`,
    got,
    expected,
    fix,
    cause,
  });
}
