// The process that decodes Parquet files for `decodeParquet`. It loads one other file of this package, so that it starts fast.
import { isUtf8 } from "node:buffer";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import {
  asyncBufferFromFile,
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  type Compressors,
  type SchemaTree,
} from "hyparquet";
import { decompressLz4, decompressLz4Raw, decompressZstd } from "hyparquet-compressors";
import { findMarked, isMarkedNumber, markNumbers, markedKey, markedFloat } from "./walk-json.ts";

/** The request for the first rows. Any later message asks for the next ones. */
export interface ParquetRequest {
  readonly path: string;
  /** See `ParquetOptions`. */
  readonly marked: readonly string[] | "all";
}

/** A row, and the first text in it that is not UTF-8; null if there is none. */
export interface DecodedRow {
  readonly value: Record<string, unknown>;
  readonly invalid: { readonly name: string; readonly bytes: Uint8Array } | null;
}

/** A message of the process; `rows: null` is the end of the file. */
export type ParquetReply =
  | { readonly kind: "ready" }
  | { readonly kind: "rows"; readonly rows: readonly DecodedRow[] | null }
  | { readonly kind: "failed"; readonly reason: string };

type Decompress = Required<Compressors>["GZIP"];

/** The page of a column of nulls is empty, which not every decompressor accepts. */
const orEmpty =
  (decompress: Decompress): Decompress =>
  (bytes, length) =>
    length === 0 ? new Uint8Array() : decompress(bytes, length);

/** Snappy is part of hyparquet. */
const compressors: Compressors = {
  GZIP: orEmpty((bytes, maxOutputLength) => gunzipSync(bytes, { maxOutputLength })),
  BROTLI: orEmpty((bytes, maxOutputLength) => brotliDecompressSync(bytes, { maxOutputLength })),
  ZSTD: orEmpty((bytes, length) => decompressZstd(bytes, new Uint8Array(length))),
  LZ4: orEmpty(decompressLz4),
  LZ4_RAW: orEmpty(decompressLz4Raw),
};

/** The bytes of a column of text that are not UTF-8. */
class InvalidText {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** Hyparquet makes the keys of maps strings. */
  toString(): string {
    throw new Error("a key of a map that is not UTF-8");
  }
}

/** The text of a JSON column. */
class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function decoded(bytes: Uint8Array | undefined, parse: (text: string) => unknown): unknown {
  if (bytes === undefined || bytes === null) return bytes;
  if (!(bytes instanceof Uint8Array)) throw new Error("a column of text without its dictionary");
  return isUtf8(bytes) ? parse(utf8.decode(bytes)) : new InvalidText(bytes);
}

const parsers = {
  stringFromBytes: (bytes: Uint8Array | undefined) => decoded(bytes, (text) => text),
  jsonFromBytes: (bytes: Uint8Array | undefined) => decoded(bytes, (text) => new JsonText(text)),
};

const maximumDepth = 400;

/**
 * Makes the parts of a row what a reader of JSON Lines has: 64-bit integers become numbers where these are exact, and bytes
 * text where they are UTF-8, because files of old writers do not mark columns of text.
 *
 * @param part A row, or a list or struct in it; changed in place.
 * @returns The first text that is not UTF-8.
 */
function simplify(part: Record<string, unknown>, depth = 1): DecodedRow["invalid"] {
  if (depth > maximumDepth) throw new Error(`values nested deeper than ${maximumDepth} levels`);
  let invalid: DecodedRow["invalid"] = null;
  for (const [name, raw] of Object.entries(part)) {
    const value = raw instanceof JsonText ? (part[name] = JSON.parse(raw.text) as unknown) : raw;
    if (typeof value === "bigint") {
      if (Number.isSafeInteger(Number(value))) part[name] = Number(value);
    } else if (value === undefined) {
      part[name] = null;
    } else if (typeof value === "string") {
      if (!isWellFormed(value)) throw new Error("text with half of a surrogate pair");
    } else if (value instanceof InvalidText) {
      invalid ??= { name, bytes: value.bytes };
      part[name] = null;
    } else if (value instanceof Uint8Array) {
      if (isUtf8(value)) part[name] = utf8.decode(value);
    } else if (typeof value === "object" && value !== null && !(value instanceof Date)) {
      const inside = simplify(value as Record<string, unknown>, depth + 1);
      invalid ??= inside;
    }
  }
  return invalid;
}

/** Returns a value of a column with marks in its lists and structs. Fields have the order of the schema. */
function withMarks(value: unknown, node: SchemaTree): unknown {
  const { children, element } = node;
  if (value instanceof JsonText) return markedJson(value);
  if (Array.isArray(value)) {
    const item = element.converted_type === "LIST" ? itemOf(node) : node;
    return value.map((entry) => withMarks(entry, item));
  }
  if (children.length === 0) return markedLeaf(value, element.type);
  if (typeof value !== "object" || value === null) return value;
  if (element.converted_type === "MAP") throw new Error(`a map in the column "${node.path.join(".")}"`);
  const fields = value as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    children.map((child) => {
      const { name } = child.element;
      return [markedKey(name), withMarks(fields[name], child)];
    }),
  );
}

/** The items of a list, as hyparquet nests them. */
function itemOf({ children: [inner] }: SchemaTree): SchemaTree {
  return inner!.children.length === 1 ? inner!.children[0]! : inner!;
}

function markedLeaf(value: unknown, type: string | undefined): unknown {
  if (isMarkedNumber(value)) throw new Error(markInText);
  const isFloat = type === "DOUBLE" || type === "FLOAT";
  return isFloat && Number.isInteger(value) ? markedFloat(value as number) : value;
}

const markInText = "the noncharacter U+FDD9 before a digit, which marks numbers here";

/** A list or an object gets marks. A JSON string, number or null is what its column holds. */
function markedJson({ text }: JsonText): unknown {
  const value = JSON.parse(text) as unknown;
  if (typeof value !== "object" || value === null) return value;
  if (findMarked(text) !== null) throw new Error(markInText);
  return JSON.parse(markNumbers(text)) as unknown;
}

const isWellFormed = (text: string): boolean => !/\p{Surrogate}/u.test(text);

interface SchemaElement {
  readonly name: string;
  readonly num_children?: number;
}

/** Throws for names that a row can hold only once. Adds the paths of columns. Returns the index after the element and its children. */
function checkNames(
  schema: readonly SchemaElement[],
  columns: string[],
  path: readonly string[] = [],
  at = 0,
): number {
  if (at >= schema.length) throw new Error("a schema that lacks some of its columns");
  const names = new Set<string | undefined>(["__proto__"]);
  let next = at + 1;
  const count = schema[at]!.num_children ?? 0;
  if (count === 0) columns.push(JSON.stringify(path));
  for (let child = 0; child < count; child += 1) {
    const name = schema[next]?.name;
    if (names.has(name))
      throw new Error(`the column ${JSON.stringify(name)} twice, or a name that no object can hold`);
    names.add(name);
    next = checkNames(schema, columns, [...path, name!], next);
  }
  return next;
}

const nameOf = (column: string): string => JSON.stringify((JSON.parse(column) as string[]).join("."));

/** Whether the decoder lacked a value, such as one that its dictionary does not have. */
function hasGap(values: ArrayLike<unknown>): boolean {
  return Array.from(values).some((value) => value === undefined || (Array.isArray(value) && hasGap(value)));
}

const rowsPerReply = 200;

/** Decodes row group by row group. The decoder replaces values that a file lacks by nulls, so each column is counted. */
async function* rowsOf({ path, marked }: ParquetRequest): AsyncGenerator<readonly DecodedRow[], void> {
  const file = await asyncBufferFromFile(path);
  if (file.byteLength < 12) throw new Error(`a file of ${file.byteLength} bytes`);
  const metadata = await parquetMetadataAsync(file);
  const columns: string[] = [];
  checkNames(metadata.schema, columns);
  const schema = parquetSchema(metadata);
  const chats =
    marked === "all" ? [] : schema.children.filter(({ element }) => marked.includes(element.name));
  const counts = metadata.row_groups.map((group) => Number(group.num_rows));
  const sum = counts.reduce((all, count) => all + count, 0);
  if (sum !== Number(metadata.num_rows) || counts.some((count) => count < 0))
    throw new Error(`${metadata.num_rows} rows in row groups of ${counts.join(", ")}`);
  let rowStart = 0;
  for (const count of counts) {
    const rowEnd = rowStart + count;
    const decodedValues = new Map(columns.map((column) => [column, 0]));
    const rows = await parquetReadObjects({
      file,
      metadata,
      rowStart,
      rowEnd,
      compressors,
      parsers,
      utf8: false,
      onPage({ pathInSchema, columnData }) {
        const column = JSON.stringify(pathInSchema);
        decodedValues.set(column, decodedValues.get(column)! + columnData.length);
        if (hasGap(columnData))
          throw new Error(`the column ${nameOf(column)} with values that its pages or its dictionary lack`);
      },
    });
    for (const [column, values] of decodedValues)
      if (values !== count)
        throw new Error(`the column ${nameOf(column)} with ${values} values in a row group of ${count} rows`);
    for (let from = 0; from < rows.length; from += rowsPerReply)
      yield rows.slice(from, from + rowsPerReply).map((row) => {
        const value = marked === "all" ? (withMarks(row, schema) as typeof row) : row;
        for (const column of chats) {
          const { name } = column.element;
          if (typeof value[name] === "object") value[name] = withMarks(value[name], column);
        }
        return { value, invalid: simplify(value) };
      });
    rowStart = rowEnd;
  }
}

const send = (reply: ParquetReply): void => void process.send!(reply);
const fail = (error: unknown): void =>
  send({ kind: "failed", reason: error instanceof Error ? error.message : String(error) });

let rows: AsyncGenerator<readonly DecodedRow[], void> | null = null;
process.on("message", (request: ParquetRequest) => {
  rows ??= rowsOf(request);
  rows
    .next()
    .then(({ value }) => send({ kind: "rows", rows: value ?? null }), fail)
    .catch(fail);
});
process.on("uncaughtException", fail);
process.once("disconnect", () => process.exit());
send({ kind: "ready" });
