import { dataError } from "../internal/data-error.ts";
import { abbreviated, quoteValue } from "../internal/quote-value.ts";
import { strictJson } from "../internal/strict-json.ts";
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

/** Returns the first part of a parsed value that is lost in UTF-8 or JSON; null if there is none. */
function lostPart(value: unknown): string | null {
  if (typeof value === "string") return /\p{Surrogate}/u.test(value) ? "half of a surrogate pair" : null;
  if (typeof value === "number") return Number.isFinite(value) ? null : "a number beyond those of JSON";
  if (typeof value !== "object" || value === null) return null;
  for (const inner of Object.values(value)) {
    const lost = lostPart(inner);
    if (lost !== null) return lost;
  }
  return null;
}

/**
 * Parses JSON of bounded depth, without repeated keys and parts that would be lost.
 *
 * @param fix For a string that is not JSON.
 * @throws PeriodicEvalError `data` at `where` for anything else.
 */
export function parseJson(text: string, where: string, fix: string): unknown {
  const parsed = strictJson(text);
  if (parsed.fault !== null) {
    const { got, expected, cause } = parsed.fault;
    throw dataError(where, got, expected, cause === undefined ? removal : fix, cause);
  }
  const lost = lostPart(parsed.value);
  if (lost === null) return parsed.value;
  throw dataError(where, lost, "numbers and Unicode text that JSON keeps", removal);
}

const removal = "Correct or remove it.";
