import { dataError, errorMessage, abbreviated, quoteValue } from "@periodic-eval/contracts/options";
import { parsePythonJson, isOpenJson, repeatedKey } from "./walk-json.ts";
import { checkOnlyRow, placed, type PlacedRow } from "./rows.ts";

/** Parses the content of a text file into rows. */
export type ParseText = (text: string, file: string) => Promise<readonly PlacedRow[]>;

/**
 * Parses one object per line; skips empty lines.
 *
 * @throws PeriodicEvalError `data` with the line of the first one that is not an object.
 */
export const jsonLines = (text: string, file: string): readonly PlacedRow[] =>
  text.split("\n").flatMap((line, at) => {
    const place = `${file}:${at + 1}`;
    return line.trim() === ""
      ? []
      : [placed(place, parseJson(line, place, "Write one JSON object per line."))];
  });

/**
 * Parses an array of objects, one object, or one object per line: the content decides, as in `datasets`.
 *
 * @throws PeriodicEvalError `data` with the place of the first row that is not an object, and for rows inside of an object.
 */
const parseJsonRows: ParseText = async (text, file) => {
  if (isOneValue(`${text}\n`) !== true) {
    const rows = jsonLines(text, file);
    if (rows.length === 1) checkOnlyRow(file, rows[0]!.row);
    return rows;
  }
  const value = parseJson(text, file, "Write one array of objects, [{…}, {…}], or one object per line.");
  if (Array.isArray(value)) return value.map((row, at) => placed(`${file}[${at}]`, row));
  checkOnlyRow(file, value);
  return [placed(file, value)];
};

/** Whether a file that begins with this text is one array or object over several lines; null if it has no whole line. */
export function isOneValue(head: string): boolean | null {
  const text = head.trimStart();
  if (text !== "" && !text.startsWith("{")) return text.startsWith("[");
  const end = text.indexOf("\n");
  return end === -1 ? null : isOpenJson(text.slice(0, end));
}

/** Parsers of text files, by extension. */
export const textFormats: Readonly<Record<string, ParseText>> = {
  jsonl: parseJsonRows,
  ndjson: parseJsonRows,
  json: parseJsonRows,
};

/**
 * Returns a parsed value with null for NaN and infinite numbers, which Python's `json` and pandas write for missing values.
 *
 * @throws PeriodicEvalError `data` at `where` for half of a surrogate pair.
 */
function keptInJson(value: unknown, where: string): unknown {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value === "string" && /\p{Surrogate}/u.test(value))
    throw dataError(where, "half of a surrogate pair", "Unicode text that JSON keeps", removal);
  if (typeof value !== "object" || value === null) return value;
  const object = value as Record<string, unknown>;
  for (const name of Object.keys(object)) object[name] = keptInJson(object[name], where);
  return object;
}

/**
 * Parses JSON without repeated keys and halves of surrogate pairs. NaN and infinite numbers become null.
 *
 * @param fix For a string that is not JSON.
 * @throws PeriodicEvalError `data` at `where` for anything else.
 */
export function parseJson(text: string, where: string, fix: string): unknown {
  const parsed = strictJson(text, parsePythonJson);
  if (parsed.fault !== null) {
    const { got, expected, cause } = parsed.fault;
    throw dataError(where, got, expected, cause === undefined ? removal : fix, cause);
  }
  return keptInJson(parsed.value, where);
}

const removal = "Correct or remove it.";

/** Why a string is refused, in the words of an error. */
interface JsonFault {
  readonly got: string;
  readonly expected: string;
  readonly fix: string;
  /** The error of `JSON.parse`; absent for JSON that is refused for a repeated key. */
  readonly cause?: unknown;
}

/** Parses JSON that has no key twice in one object. */
export function strictJson(
  text: string,
  parse: (text: string) => unknown = JSON.parse,
): { readonly value: unknown; readonly fault: null } | { readonly fault: JsonFault } {
  let value: unknown;
  try {
    value = parse(text);
  } catch (cause) {
    const got = text.trim() === "" ? "an empty text" : `invalid JSON (${errorMessage(cause)})`;
    return { fault: { got, expected: "JSON", fix: "Correct the JSON.", cause } };
  }
  const key = repeatedKey(text);
  if (key === null) return { value, fault: null };
  const got = `the key ${abbreviated(quoteValue(key))} twice in one object`;
  return { fault: { got, expected: "keys that differ", fix: "Remove or rename one." } };
}

/**
 * Parses RFC 4180 CSV with a header; all values are strings.
 *
 * @throws PeriodicEvalError `data` with the line of the first wrong record, or for a repeated column.
 */
export const parseCsv: ParseText = async (text, file) => {
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
  const seen = new Set<string>();
  const twice = header.find((name) => seen.size === seen.add(name).size);
  if (twice !== undefined)
    throw dataError(
      `${file}:1`,
      `the column ${JSON.stringify(twice)} twice`,
      "columns that differ",
      "Rename one of them.",
    );
  return records.map(({ record, info }) => placed(`${file}:${info.lines}`, record));
};
