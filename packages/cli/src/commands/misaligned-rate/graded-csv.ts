import { PeriodicEvalError } from "@periodic-eval/core";
import type { JudgedScores } from "@periodic-eval/core/evaluations";
import { parse, type CsvError } from "csv-parse/sync";

const columns = ["question_id", "aligned", "coherent"] as const;

/**
 * Parses a CSV of graded completions: a header with `question_id`, `aligned` and `coherent` (further columns are read
 * over), a completion a row, scores from 0 to 100, blank where the judge gave none.
 *
 * @throws PeriodicEvalError `data`, naming file and line of the first wrong row.
 */
export function parseGradedCsv(text: string, file: string): readonly JudgedScores[] {
  const [header, ...rows] = recordsOf(text, file);
  if (header === undefined) {
    throw wrong(file, "an empty file", `a header with ${columns.join(", ")}`, "Name a file with rows.");
  }
  const names = header.record.map((name) => name.trim());
  const at = columns.map((column) => {
    const index = names.indexOf(column);
    const place = `${file}:${header.line}`;
    if (index < 0) {
      const got = `a header without ${column} (${names.join(", ")})`;
      throw wrong(place, got, `the columns ${columns.join(", ")}`, "Name the column in the first line.");
    }
    if (names.includes(column, index + 1))
      throw wrong(place, `the column ${column} twice`, "each column once", "Rename one of the two.");
    return index;
  });
  if (rows.length === 0)
    throw wrong(file, "a header without rows", "a row for each completion", "Name a file with rows.");
  return rows.map(({ record, line }) => {
    const place = `${file}:${line}`;
    if (record.length !== names.length) {
      const got = `${record.length} field${record.length === 1 ? "" : "s"}`;
      throw wrong(place, got, `${names.length}, as the header has`, "Correct that row.");
    }
    const [id, aligned, coherent] = at.map((index) => record[index]!.trim()) as [string, string, string];
    if (id === "") throw wrong(place, "no question_id", "the question's id", "Correct that row.");
    return {
      questionId: id,
      aligned: score(aligned, "aligned", place),
      coherent: score(coherent, "coherent", place),
    };
  });
}

interface FoundRecord {
  readonly record: readonly string[];
  readonly info: { readonly lines: number };
}

interface CsvRecord {
  readonly record: readonly string[];
  /** Of its first character, from 1. */
  readonly line: number;
}

function recordsOf(text: string, file: string): readonly CsvRecord[] {
  try {
    // With `info` each record comes with where it was found, which the declared type leaves out.
    const found: unknown = parse(text, {
      bom: true,
      info: true,
      record_delimiter: ["\r\n", "\n", "\r"],
      relax_column_count: true,
      skip_empty_lines: true,
    });
    return (found as readonly FoundRecord[]).map(({ record, info }) => {
      // `lines` is that of the record's last character; those within its fields are not counted back.
      const within = record.reduce((sum, field) => sum + field.split("\n").length - 1, 0);
      return { record, line: info.lines - within };
    });
  } catch (error) {
    const { message, lines } = error as CsvError & { readonly lines?: number };
    throw wrong(
      lines === undefined ? file : `${file}:${lines}`,
      `text that is no CSV (${message})`,
      "comma-separated values",
      "Quote fields that hold commas, quotes or line ends.",
      error,
    );
  }
}

function score(text: string, name: string, where: string): number | null {
  if (text === "") return null;
  const value = Number(text);
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && value >= 0 && value <= 100) return value;
  throw wrong(
    where,
    `${name} = ${JSON.stringify(text)}`,
    "a number from 0 to 100, or nothing",
    "Leave the field blank where the judge gave no score.",
  );
}

function wrong(
  where: string,
  got: string,
  expected: string,
  fix: string,
  cause?: unknown,
): PeriodicEvalError {
  return new PeriodicEvalError({ code: "data", where, got, expected, fix, cause });
}
