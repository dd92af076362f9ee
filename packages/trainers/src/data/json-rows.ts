import { createReadStream } from "@periodic-eval/store/platform";
import {
  checkOnlyRow,
  isOneValue,
  unpack,
  findMarked,
  isMarkedNumber,
  joinBytes,
  markNumbers,
  parsePythonJson,
  repeatedKey,
  strictJson,
  withoutMark,
} from "@periodic-eval/data";
import { invalidUtf8, utf8Text } from "@periodic-eval/store";
import { dataError, isRecord } from "@periodic-eval/contracts/options";
import { type BadRow, abbreviate, describeValue } from "./bad-row.ts";
import { chatColumns } from "./messages.ts";

/** A row of a source, before parsing. */
export interface SourceRow {
  readonly where: string;
  /** Inside of `chatColumns`, marks stand for what JavaScript reads otherwise than Python (`markNumbers`). */
  readonly value: unknown;
}

/** Where rows have marks: inside of `chatColumns`, or everywhere. */
export type Marked = "chats" | "all";

type Bytes = AsyncGenerator<Uint8Array, void>;

/**
 * Reads the rows of a JSON file, which may be a gzip file. Its first line decides whether it has a value per line, which is
 * streamed, or is an array or an object over several lines, which is parsed as a whole.
 *
 * @throws PeriodicEvalError `data` for a file that is parsed as a whole and is not JSON, and for one that holds its rows in an
 *   object.
 */
export async function* jsonRows(
  path: string,
  maxLineBytes: number,
  marked: Marked,
): AsyncGenerator<SourceRow | BadRow, void> {
  const stream = createReadStream(path, { highWaterMark: 2 ** 20 }) as AsyncIterable<Uint8Array>;
  const rest = unpack(stream, path);
  const head: Uint8Array[] = [];
  let size = 0;
  let isWhole: boolean | null = null;
  while (isWhole === null && size <= maxLineBytes) {
    const next = await rest.next();
    if (next.done === true) break;
    head.push(next.value);
    size += next.value.length;
    isWhole = isOneValue(new TextDecoder().decode(joinBytes(head, size)));
  }
  const chunks = concatenated(head, rest);
  if (isWhole === true) yield* rowsOfWhole(chunks, path, marked);
  else yield* rowsOfLines(chunks, path, maxLineBytes, marked);
}

async function* concatenated(head: readonly Uint8Array[], rest: Bytes): Bytes {
  yield* head;
  yield* rest;
}

async function* rowsOfLines(
  chunks: Bytes,
  path: string,
  maxLineBytes: number,
  marked: Marked,
): AsyncGenerator<SourceRow | BadRow, void> {
  const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let number = 0;
  const seen: unknown[] = [];
  for await (const line of readLines(chunks, maxLineBytes)) {
    number += 1;
    const where = `${path}:${number}`;
    if ("tooLong" in line) {
      const got = `${line.tooLong} bytes; the maximum is ${maxLineBytes}`;
      yield { where, reason: "line_too_long", got };
      continue;
    }
    let text: string;
    try {
      text = utf8.decode(line.bytes);
    } catch {
      yield { where, reason: "invalid_text", got: invalidUtf8(line.bytes) };
      continue;
    }
    if (number === 1) text = text.replace(/^\uFEFF/, "");
    if (text.trim() === "") continue;
    const row = parseJson(text, where, marked);
    if (seen.length < 2) seen.push("value" in row ? row.value : null);
    yield row;
  }
  if (seen.length === 1) checkOnlyRow(path, seen[0]);
}

function parseJson(text: string, where: string, marked: Marked): SourceRow | BadRow {
  let value: unknown;
  try {
    value = parsePythonJson(text);
  } catch {
    return { where, reason: "not_json", got: abbreviate(text) };
  }
  const key = repeatedKey(text);
  if (key !== null)
    return { where, reason: "repeated_key", got: `${describeValue(key)} twice in one object` };
  if (findMarked(text) !== null) return { where, reason: "invalid_text", got: markInText };
  const json = markNumbers(text);
  if (json === text) return { where, value };
  return { where, value: withMarks(value, parsePythonJson(json), marked) };
}

const markInText = "the noncharacter U+FDD9 before a digit, which marks numbers here; remove it";

/** Returns the marked row; for `"chats"` the row with its lists and objects in the columns of chats. */
function withMarks(row: unknown, marked: unknown, where: Marked): unknown {
  if (where === "all" || !isRecord(row)) return where === "all" ? marked : row;
  const nested = chatColumns.filter((name) => typeof row[name] === "object" && row[name] !== null);
  return { ...row, ...Object.fromEntries(nested.map((name) => [name, (marked as typeof row)[name]])) };
}

/** The longest string of V8, in bytes of ASCII. */
const maxWholeBytes = 2 ** 29 - 24;

/** The elements of an array of strings become rows of `text`, as in `datasets`. */
async function* rowsOfWhole(chunks: Bytes, path: string, where: Marked): AsyncGenerator<SourceRow, void> {
  const parts: Uint8Array[] = [];
  let size = 0;
  const fix = `Write one object per line: jq -c '.[]' for an array of rows, jq -c . for objects.`;
  const wrong = (got: string, cause?: unknown) =>
    dataError(path, got, "an array of objects, or one object per line", fix, cause);
  for await (const chunk of chunks) {
    parts.push(chunk);
    size += chunk.length;
    if (size > maxWholeBytes) throw wrong("one JSON value of more than 512 MiB");
  }
  const text = utf8Text(joinBytes(parts, size), path);
  const { fault, ...parsed } = strictJson(text, parsePythonJson);
  if (fault !== null) throw wrong(fault.got, fault.cause);
  const { value } = parsed as { readonly value: unknown };
  const json = markNumbers(text);
  if (findMarked(text) !== null) throw wrong(markInText);
  const marked = json === text ? value : parsePythonJson(json);
  if (!Array.isArray(value)) {
    checkOnlyRow(path, value);
    return yield { where: path, value: withMarks(value, marked, where) };
  }
  const isOfTexts = typeof value[0] === "string";
  for (const [i, row] of value.entries())
    yield {
      where: `${path}[${i}]`,
      value:
        isOfTexts && !isRecord(row)
          ? { text: row as unknown }
          : withMarks(row, (marked as unknown[])[i], where),
    };
}

/**
 * Returns a row whose marks are everywhere as the JSON that Python reads as the source's: with all digits of its numbers, its order
 * of keys, and NaN and Infinity.
 *
 * @throws PeriodicEvalError `data` for bytes.
 */
export function formatRow({ where, value }: SourceRow): string {
  const format = (inner: unknown): string => formatRow({ where, value: inner });
  const nameOf = (name: string) => JSON.stringify(isMarkedNumber(name) ? withoutMark(name) : name);
  if (isMarkedNumber(value)) return withoutMark(value);
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  if (ArrayBuffer.isView(value))
    throw dataError(where, "bytes", "a value that JSON can hold", "Leave that column out of the file.");
  if (Array.isArray(value)) return `[${value.map(format).join(", ")}]`;
  if (!isRecord(value) || value instanceof Date) return JSON.stringify(value ?? null);
  const fields = Object.entries(value).map(([name, inner]) => `${nameOf(name)}: ${format(inner)}`);
  return `{${fields.join(", ")}}`;
}

/** A line of a file without its line feed, or the number of bytes of a line that is too long. */
type Line = { readonly bytes: Uint8Array } | { readonly tooLong: number };

const lineFeed = 10;

/**
 * Splits a file into its lines, in order. Only a line feed ends a line: U+2028, which JSON may contain unescaped, does not. Never
 * has more than `maxBytes` of a longer line in memory.
 */
async function* readLines(chunks: Bytes, maxBytes: number): AsyncGenerator<Line, void> {
  let parts: Uint8Array[] = [];
  let size = 0;
  const take = (part: Uint8Array) => {
    size += part.length;
    if (size <= maxBytes) parts.push(part);
    else parts = [];
  };
  const end = (): Line => {
    const line = size <= maxBytes ? { bytes: joinBytes(parts, size) } : { tooLong: size };
    parts = [];
    size = 0;
    return line;
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let to = chunk.indexOf(lineFeed); to >= 0; to = chunk.indexOf(lineFeed, from)) {
      take(chunk.subarray(from, to));
      yield end();
      from = to + 1;
    }
    take(chunk.subarray(from));
  }
  if (size > 0) yield end();
}
