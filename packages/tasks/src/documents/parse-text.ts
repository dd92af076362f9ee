import { errorMessage } from "@periodic-eval/core/internal";
import { abbreviated, badData, placed, type PlacedRow } from "./rows.ts";

/** The rows of a text, by the format that its file's name says. */
export type ParseText = (text: string, file: string) => Promise<readonly PlacedRow[]>;

/** One object a line; empty lines are passed over. */
const parseJsonLines: ParseText = async (text, file) =>
  text.split("\n").flatMap((line, at) => {
    const place = `${file}:${at + 1}`;
    return line.trim() === "" ? [] : [placed(place, parseJson(line, place, "Write one JSON object a line."))];
  });

/** A list of objects. */
const parseJsonList: ParseText = async (text, file) => {
  const value = parseJson(text, file, "Write a list of objects, or name a file of lines (.jsonl).");
  if (Array.isArray(value)) return value.map((row, at) => placed(`${file}[${at}]`, row));
  const got = abbreviated(JSON.stringify(value));
  throw badData(file, got, "a list of objects", "Write [{…}, {…}], or name a file of lines (.jsonl).");
};

/** RFC 4180 with a header; all values are texts. */
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
    const fix = "Close its quotes, and give it as many fields as the header has.";
    throw badData(`${file}${line}`, errorMessage(cause), "a record of a CSV file", fix, cause);
  }
  const twice = header.find((name, at) => header.indexOf(name) !== at);
  if (twice !== undefined)
    throw badData(
      `${file}:1`,
      `the column ${JSON.stringify(twice)} twice`,
      "columns that differ",
      "Rename one of them.",
    );
  return records.map(({ record, info }) => placed(`${file}:${info.lines}`, record));
};

/** By the ending of the file's name. */
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
    throw badData(where, `text that is no JSON (${errorMessage(cause)})`, "JSON", fix, cause);
  }
}
