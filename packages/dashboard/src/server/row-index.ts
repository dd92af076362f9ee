import { createHash } from "node:crypto";
import { dirname, basename } from "node:path/posix";
import type { Json, Snapshot } from "@periodic-eval/core";
import { checkRows } from "@periodic-eval/core/snapshots";
import type { ContainedFiles } from "./contained-files.ts";

/** Every so many rows, the index has the position of one. */
const rowsPerEntry = 64;
/** Positions that stay in memory, of all files: 8 bytes each. */
const keptPositions = 2 ** 20;
/** Largest row, in bytes. */
const maxRowBytes = 64 * 2 ** 20;

interface RowIndex {
  readonly stamp: string;
  /** Bytes before rows 0, 64, 128 … */
  readonly positions: readonly number[];
  readonly rows: number;
}

/**
 * Reads rows by their number. The first request for a file reads it once, with the memory of one part of it, verifies it and keeps
 * where every 64th row begins; later requests read only the rows that they ask for, until the file changes.
 */
export function rowReader() {
  const kept = new Map<string, RowIndex>();

  async function indexOf(
    snapshotFile: string,
    samples: Snapshot["samples"],
    files: ContainedFiles,
  ): Promise<RowIndex> {
    const file = rowsFile(snapshotFile);
    const stamp = `${samples?.sha256 ?? ""} ${await stampOf(file, files)}`;
    const known = kept.get(file);
    kept.delete(file);
    const index = known?.stamp === stamp ? known : await build(snapshotFile, { samples, stamp }, files);
    kept.set(file, index);
    let total = [...kept.values()].reduce((sum, { positions }) => sum + positions.length, 0);
    for (const [name, { positions }] of kept) {
      if (total <= keptPositions || name === file) break;
      kept.delete(name);
      total -= positions.length;
    }
    return index;
  }

  return {
    /**
     * Returns rows and the number of all rows.
     *
     * @throws Error if the rows are not those that the snapshot names.
     */
    async read(
      snapshotFile: string,
      samples: Snapshot["samples"],
      { first, count }: { readonly first: number; readonly count: number },
      files: ContainedFiles,
    ): Promise<{ readonly rows: readonly Json[]; readonly total: number }> {
      const { positions, rows: total } = await indexOf(snapshotFile, samples, files);
      const entry = Math.floor(first / rowsPerEntry);
      if (first >= total || count < 1) return { rows: [], total };
      const rows: Json[] = [];
      let number = entry * rowsPerEntry;
      for await (const { line } of linesOf(files.chunks(rowsFile(snapshotFile), positions[entry]))) {
        if (line === "") continue;
        if (number >= first) rows.push(JSON.parse(line) as Json);
        if (++number >= first + count) break;
      }
      return { rows, total };
    },
  };
}

const rowsFile = (snapshotFile: string): string => snapshotFile.replace(/\.json$/, ".samples.jsonl");

async function stampOf(file: string, files: ContainedFiles): Promise<string> {
  const entries = await files.stamps(dirname(file), basename(file));
  return entries[0]?.stamp ?? "";
}

async function build(
  snapshotFile: string,
  { samples, stamp }: { readonly samples: Snapshot["samples"]; readonly stamp: string },
  files: ContainedFiles,
): Promise<RowIndex> {
  const hash = createHash("sha256");
  const positions: number[] = [];
  let rows = 0;
  for await (const { line, position } of linesOf(files.chunks(rowsFile(snapshotFile)), (chunk) =>
    hash.update(chunk),
  )) {
    if (line === "") continue;
    if (rows++ % rowsPerEntry === 0) positions.push(position);
  }
  const check =
    samples === null
      ? { state: "damaged" }
      : await checkRows(snapshotFile, samples, hash.digest("hex"), files);
  if (check.state === "sound") return { stamp, positions, rows };
  throw new Error(
    `${rowsFile(snapshotFile)}: got ${rows} rows, edited or damaged after they were written, expected those that the snapshot ` +
      "names. Load the page again; if this stays, restore the file, or measure again.",
  );
}

/** Splits chunks into lines, with the position of each in bytes from the first chunk. */
async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  onChunk: (chunk: Uint8Array) => unknown = () => undefined,
): AsyncGenerator<{ readonly line: string; readonly position: number }, void, void> {
  let rest: Buffer[] = [];
  let [restBytes, position] = [0, 0];
  const take = (end: Uint8Array) => {
    const line = Buffer.concat([...rest, end])
      .toString("utf8")
      .replace(/\r$/, "");
    [rest, restBytes] = [[], 0];
    return line;
  };
  for await (const chunk of chunks) {
    onChunk(chunk);
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      const bytes = restBytes + end - from + 1;
      yield { line: take(chunk.subarray(from, end)), position };
      position += bytes;
      from = end + 1;
    }
    rest.push(Buffer.from(chunk.subarray(from)));
    restBytes += chunk.length - from;
    if (restBytes > maxRowBytes) throw new Error(`a row of more than ${maxRowBytes} bytes`);
  }
  if (restBytes > 0) yield { line: take(new Uint8Array()), position };
}
