import { errorMessage } from "../internal/error-message.ts";
import { dataError } from "../internal/data-error.ts";
import { abbreviated, quoteValue } from "../internal/quote-value.ts";
import { repeatedKey } from "../internal/repeated-key.ts";
import { placed, type PlacedRow } from "./rows.ts";

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
const parseJsonLines: ParseText = async (text, file) => jsonLines(text, file);

const parseJsonList: ParseText = async (text, file) => {
  const value = parseJson(text, file, "Write an array of objects, or rename a JSON Lines file to .jsonl.");
  if (Array.isArray(value)) return value.map((row, at) => placed(`${file}[${at}]`, row));
  const got = abbreviated(JSON.stringify(value));
  const fix = "Write [{…}, {…}], or rename a JSON Lines file to .jsonl.";
  throw dataError(file, got, "an array of objects", fix);
};

/** Parsers of text files, by extension. */
export const textFormats: Readonly<Record<string, ParseText>> = {
  jsonl: parseJsonLines,
  ndjson: parseJsonLines,
  json: parseJsonList,
};

/** @throws PeriodicEvalError `data` for a string that is not JSON, or has an object with a key twice. */
function parseJson(text: string, where: string, fix: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw dataError(where, `invalid JSON (${errorMessage(cause)})`, "JSON", fix, cause);
  }
  const key = repeatedKey(text);
  if (key === null) return value;
  const got = `the key ${abbreviated(quoteValue(key))} twice in one object`;
  throw dataError(where, got, "keys that differ", "Remove or rename one of the two.");
}
