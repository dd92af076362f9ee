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
  const got = abbreviated(quoteValue(value));
  const fix = "Write [{…}, {…}], or rename a JSON Lines file to .jsonl.";
  throw dataError(file, got, "an array of objects", fix);
};

/** Parsers of text files, by extension. */
export const textFormats: Readonly<Record<string, ParseText>> = {
  jsonl: parseJsonLines,
  ndjson: parseJsonLines,
  json: parseJsonList,
};

/** Deeper values overflow the stack of recursive readers. */
const maximumDepth = 400;

/** Returns the first part of a parsed value that is lost in UTF-8 or JSON, or is nested too deep; null if there is none. */
function faultOf(value: unknown, depth = 0): string | null {
  if (typeof value === "string") return /\p{Surrogate}/u.test(value) ? "half of a surrogate pair" : null;
  if (typeof value === "number") return Number.isFinite(value) ? null : "a number beyond those of JSON";
  if (typeof value !== "object" || value === null) return null;
  if (depth === maximumDepth) return `values nested deeper than ${maximumDepth} levels`;
  for (const inner of Object.values(value)) {
    const fault = faultOf(inner, depth + 1);
    if (fault !== null) return fault;
  }
  return null;
}

/** @throws PeriodicEvalError `data` for a string that is not JSON, or has a part that would be lost. */
function parseJson(text: string, where: string, fix: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw dataError(where, `invalid JSON (${errorMessage(cause)})`, "JSON", fix, cause);
  }
  const fault = faultOf(value);
  if (fault !== null)
    throw dataError(where, fault, "numbers and Unicode text that JSON keeps", "Correct or remove the value.");
  const key = repeatedKey(text);
  if (key === null) return value;
  const got = `the key ${abbreviated(quoteValue(key))} twice in one object`;
  throw dataError(where, got, "keys that differ", "Remove or rename one of the two.");
}
