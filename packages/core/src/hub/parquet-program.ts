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

/**
 * Returns the program that decodes a Parquet file, row group by row group. It is a string because Node 20 cannot run a
 * TypeScript file, and a loader would triple the time to start. Pages may be uncompressed or compressed with snappy, gzip or
 * brotli. Text that is not UTF-8 becomes a Map of its bytes, which no Parquet value does; bytes that need not be text stay bytes.
 *
 * @param mebibytes Above this memory, or without its parent, the program ends: its worker sees both while a decoder loops.
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

const compressors = {
  GZIP: (bytes, maxOutputLength) => gunzipSync(bytes, { maxOutputLength }),
  BROTLI: (bytes, maxOutputLength) => brotliDecompressSync(bytes, { maxOutputLength }),
};

const utf8 = new TextDecoder("utf-8", { fatal: true });
const decoded = (bytes, parse) => {
  if (!bytes) return bytes;
  let text;
  try {
    text = utf8.decode(bytes);
  } catch {
    return new Map([["bytes", bytes]]);
  }
  return parse(text);
};
const parsers = {
  stringFromBytes: (bytes) => decoded(bytes, (text) => text),
  jsonFromBytes: (bytes) => decoded(bytes, JSON.parse),
};

/** Throws for names that a row can hold only once. Returns the index after the element and its children. */
const checkNames = (schema, at = 0) => {
  const names = new Set(["__proto__"]);
  let next = at + 1;
  for (let child = 0; child < (schema[at].num_children ?? 0); child += 1) {
    const { name } = schema[next];
    if (names.has(name)) throw new Error(\`the column \${JSON.stringify(name)} twice, or a name that no object can hold\`);
    names.add(name);
    next = checkNames(schema, next);
  }
  return next;
};

async function* rowsOf({ hyparquet, path }) {
  const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await import(hyparquet);
  const file = await asyncBufferFromFile(path);
  if (file.byteLength < 12) throw new Error(\`a file of \${file.byteLength} bytes\`);
  const metadata = await parquetMetadataAsync(file);
  checkNames(metadata.schema);
  const counts = metadata.row_groups.map((group) => Number(group.num_rows));
  const sum = counts.reduce((all, one) => all + one, 0);
  if (sum !== Number(metadata.num_rows)) throw new Error(\`\${metadata.num_rows} rows in row groups of \${sum}\`);
  let rowStart = 0;
  for (const count of counts) {
    const rowEnd = rowStart + count;
    const rows = await parquetReadObjects({ file, metadata, rowStart, rowEnd, compressors, parsers, utf8: false });
    for (let at = 0; at < rows.length; at += 500) yield rows.slice(at, at + 500);
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
