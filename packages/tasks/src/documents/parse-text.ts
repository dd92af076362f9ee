import { errorMessage } from "@periodic-eval/core/internal";
import { abbreviated, dataError, placed, type PlacedRow } from "./rows.ts";

/** Parses the content of a text file into rows. */
export type ParseText = (text: string, file: string) => Promise<readonly PlacedRow[]>;

/** Parses one object per line; skips empty lines. */
const parseJsonLines: ParseText = async (text, file) =>
  text.split("\n").flatMap((line, at) => {
    const place = `${file}:${at + 1}`;
    return line.trim() === ""
      ? []
      : [placed(place, parseJson(line, place, "Write one JSON object per line."))];
  });

/** Parses an array of objects. */
const parseJsonList: ParseText = async (text, file) => {
  const value = parseJson(text, file, "Write an array of objects, or rename a JSON Lines file to .jsonl.");
  if (Array.isArray(value)) return value.map((row, at) => placed(`${file}[${at}]`, row));
  const got = abbreviated(JSON.stringify(value));
  const fix = "Write [{…}, {…}], or rename a JSON Lines file to .jsonl.";
  throw dataError(file, got, "an array of objects", fix);
};

/** Parses RFC 4180 CSV with a header; all values are strings. */
const parseCsv: ParseText = async (text, file) => {
  const { CsvError, parse } = await import("csv-parse/sync");
  let records: readonly { readonly record: unknown; readonly info: { readonly lines: number } }[];
  let header: readonly string[] = [];
  const columns = (names: readonly string[]) => {
    header = names;
    return [...names];
  };
  try {
    records = parse(text, { columns, skip_empty_lines: true, info: true });
  } catch (cause) {
    const line = cause instanceof CsvError ? `:${String(cause["lines"])}` : "";
    const fix = "Close its quotes, and write as many fields as the header has.";
    throw dataError(`${file}${line}`, errorMessage(cause), "a record of a CSV file", fix, cause);
  }
  const twice = header.find((name, at) => header.indexOf(name) !== at);
  if (twice !== undefined)
    throw dataError(
      `${file}:1`,
      `the column ${JSON.stringify(twice)} twice`,
      "columns that differ",
      "Rename one of them.",
    );
  return records.map(({ record, info }) => placed(`${file}:${info.lines}`, record));
};

/** Parsers by file extension. */
export const textFormats: Readonly<Record<string, ParseText>> = {
  jsonl: parseJsonLines,
  ndjson: parseJsonLines,
  json: parseJsonList,
  csv: parseCsv,
};

function parseJson(text: string, where: string, fix: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw dataError(where, `invalid JSON (${errorMessage(cause)})`, "JSON", fix, cause);
  }
}
