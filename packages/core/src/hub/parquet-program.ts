/** The first message to the program. Any later message asks for the next rows. */
export interface ParquetRequest {
  /** URL of the module. */
  readonly hyparquet: string;
  readonly path: string;
}

/** A message of the program; `rows: null` is the end of the file. */
export type ParquetReply =
  | { readonly kind: "ready" }
  | { readonly kind: "rows"; readonly rows: readonly Record<string, unknown>[] | null }
  | { readonly kind: "failed"; readonly reason: string };

const decoding = `
const compressors = {
  GZIP: (bytes, maxOutputLength) => gunzipSync(bytes, { maxOutputLength }),
  BROTLI: (bytes, maxOutputLength) => brotliDecompressSync(bytes, { maxOutputLength }),
};

// A key of a map may have this name.
delete Object.prototype.__proto__;

const utf8 = new TextDecoder("utf-8", { fatal: true });
const decoded = (bytes, parse) => {
  if (bytes === undefined || bytes === null) return bytes;
  if (!(bytes instanceof Uint8Array)) throw new Error("a column of text without its dictionary");
  let text;
  try {
    text = utf8.decode(bytes);
  } catch {
    const invalid = new Map([["bytes", bytes]]);
    return Object.assign(invalid, { toString: invalidKey });
  }
  return parse(text);
};
const invalidKey = () => {
  throw new Error("a key of a map that is not UTF-8");
};
const parsers = {
  stringFromBytes: (bytes) => decoded(bytes, (text) => text),
  jsonFromBytes: (bytes) => decoded(bytes, JSON.parse),
};
`;

const checks = `
/** Throws for names that a row can hold only once. Adds the paths of columns. Returns the index after the element and its children. */
const checkNames = (schema, columns, path = [], at = 0) => {
  if (at >= schema.length) throw new Error("a schema that lacks some of its columns");
  const names = new Set(["__proto__"]);
  let next = at + 1;
  const count = schema[at].num_children ?? 0;
  if (count === 0) columns.push(JSON.stringify(path));
  for (let child = 0; child < count; child += 1) {
    const name = schema[next]?.name;
    if (names.has(name)) throw new Error(\`the column \${JSON.stringify(name)} twice, or a name that no object can hold\`);
    names.add(name);
    next = checkNames(schema, columns, [...path, name], next);
  }
  return next;
};

const nameOf = (column) => JSON.stringify(JSON.parse(column).join("."));

/** Whether the decoder lacked a value, such as one that its dictionary does not have. */
const hasGap = (values) => {
  for (const value of values) if (value === undefined || (Array.isArray(value) && hasGap(value))) return true;
  return false;
};

/** Returns the bytes that a value takes at most in memory. Throws for one that a reader of JSON Lines refuses as well. */
const sizeOf = (value, depth = 0) => {
  if (typeof value === "string") {
    if (!value.isWellFormed()) throw new Error("text with half of a surrogate pair");
    return 32 + 2 * value.length;
  }
  if (typeof value !== "object" || value === null) return 8;
  if (ArrayBuffer.isView(value)) return 96 + value.byteLength;
  if (value instanceof Map) return 96 + value.get("bytes").byteLength;
  if (depth === 400) throw new Error("values nested deeper than 400 levels");
  let bytes = 64;
  for (const inner of Array.isArray(value) ? value : Object.values(value)) bytes += 8 + sizeOf(inner, depth + 1);
  return bytes;
};
`;

/**
 * Returns the program that decodes a Parquet file, row group by row group. It is a string because Node 20 cannot run a
 * TypeScript file, and a loader would triple the time to start. Pages may be uncompressed or compressed with snappy, gzip or
 * brotli. Text that is not UTF-8 becomes a Map of its bytes, which no Parquet value does; bytes that need not be text stay bytes.
 * The decoder replaces values that a file lacks by nulls, so each column is counted.
 *
 * @param mebibytes Above this memory, or without its parent, the program ends: its worker sees both while a decoder loops. Rows
 *   that together take more, in the parent, are refused: a small file can repeat one text a million times.
 */
export const parquetProgram = (mebibytes: number): string => `
import { Worker } from "node:worker_threads";
import { brotliDecompressSync, gunzipSync } from "node:zlib";

new Worker(
  \`const { ppid } = process;
  setInterval(() => {
    if (process.ppid !== ppid || process.memoryUsage.rss() > ${mebibytes} * 2 ** 20) process.kill(process.pid, "SIGKILL");
  }, 50);\`,
  { eval: true },
);

${decoding}
${checks}
async function* rowsOf({ hyparquet, path }) {
  const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await import(hyparquet);
  const file = await asyncBufferFromFile(path);
  if (file.byteLength < 12) throw new Error(\`a file of \${file.byteLength} bytes\`);
  const metadata = await parquetMetadataAsync(file);
  const columns = [];
  checkNames(metadata.schema, columns);
  const counts = metadata.row_groups.map((group) => Number(group.num_rows));
  const sum = counts.reduce((all, one) => all + one, 0);
  if (sum !== Number(metadata.num_rows) || counts.some((count) => count < 0))
    throw new Error(\`\${metadata.num_rows} rows in row groups of \${counts}\`);
  let [rowStart, left] = [0, ${mebibytes} * 2 ** 20];
  for (const count of counts) {
    const rowEnd = rowStart + count;
    const found = new Map(columns.map((column) => [column, 0]));
    const onPage = ({ pathInSchema, columnData }) => {
      const column = JSON.stringify(pathInSchema);
      found.set(column, found.get(column) + columnData.length);
      if (hasGap(columnData)) throw new Error(\`the column \${nameOf(column)} with values that its pages or its dictionary lack\`);
    };
    const rows = await parquetReadObjects({ file, metadata, rowStart, rowEnd, compressors, parsers, onPage, utf8: false });
    for (const [column, values] of found)
      if (values !== count) throw new Error(\`the column \${nameOf(column)} with \${values} values in a row group of \${count} rows\`);
    let [some, bytes] = [[], 0];
    for (const row of rows) {
      const size = 128 + sizeOf(row);
      left -= size;
      if (left < 0) throw new Error("rows that take more than ${mebibytes} MiB of memory together");
      some.push(row);
      bytes += size;
      if (some.length < 500 && bytes < 2 ** 22) continue;
      yield some;
      [some, bytes] = [[], 0];
    }
    if (some.length > 0) yield some;
    rowStart = rowEnd;
  }
}

const fail = (error) => process.send({ kind: "failed", reason: String(error?.message ?? error) });
let rows;
process.on("message", (request) => {
  rows ??= rowsOf(request);
  rows.next().then(({ value = null }) => process.send({ kind: "rows", rows: value })).catch(fail);
});
process.on("uncaughtException", fail);
process.once("disconnect", () => process.exit());
process.send({ kind: "ready" });
`;
