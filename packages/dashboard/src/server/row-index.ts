import { dataError } from "@periodic-eval/contracts/options";
import { createHash } from "node:crypto";
import type { Json } from "@periodic-eval/core";
import { checkRows, samplesPath } from "@periodic-eval/store";
import { LRUCache } from "lru-cache";
import type { RowsPlace } from "../answers/answered-measurements.ts";
import type { ContainedFiles } from "./contained-files.ts";

/** The index has the position of every 64th row. */
const rowsPerEntry = 64;
/** Positions that stay in memory, of all files: 8 bytes each. */
const keptPositions = 2 ** 20;

interface RowIndex {
  readonly stamp: string;
  /** Bytes before rows 0, 64, 128 … */
  readonly positions: readonly number[];
  readonly rows: number;
}

/** Files with more rows are read before they are verified, if the reader asks for it. */
export const largeRows = 20_000;

/** Which rows to read. */
export interface RowRange {
  /** 0-based. */
  readonly first: number;
  readonly count: number;
  /** Whether the rows of a large file may be read before the file is verified. Default: false. */
  readonly verifiesLater?: boolean;
}

export interface ReadRows {
  readonly rows: readonly Json[];
  /** Number of all rows; the number that the snapshot states if the file is not verified yet. */
  readonly total: number;
  readonly isVerified: boolean;
}

/**
 * Reads rows by their number. The first request for a file reads it once, with the memory of one part of it, verifies it and keeps
 * where every 64th row begins; later requests read only the rows that they ask for, until the file changes.
 */
export function rowReader() {
  const cache = new LRUCache<string, RowIndex>({
    maxSize: keptPositions,
    sizeCalculation: ({ positions }) => Math.max(1, positions.length),
  });

  return {
    /**
     * Returns rows and the number of all rows.
     *
     * @throws Error if the rows are not those that the snapshot names.
     */
    async read(source: RowsPlace, range: RowRange, files: ContainedFiles): Promise<ReadRows> {
      const { snapshotFile, samples } = source;
      const file = samplesPath(snapshotFile);
      const written = await files.stamp(file).catch(() => null);
      const stamp = `${samples?.sha256} ${written?.stamp}`;
      const known = cache.get(file);
      const isLater = range.verifiesLater === true && (samples?.rows ?? 0) > largeRows;
      let index: Pick<RowIndex, "positions" | "rows"> | null = known?.stamp === stamp ? known : null;
      const isVerified = index !== null || !isLater;
      if (!isLater) {
        index ??= await verifiedRows(source, files);
        cache.set(file, { stamp, ...index });
      }
      // Rows before the wanted ones are found, but not hashed.
      index ??= { ...(await findRows(files.chunks(file), { until: range.first })), rows: samples!.rows };
      return { rows: await rowsFrom(file, index.positions, range, files), total: index.rows, isVerified };
    },
  };
}

/** Reads rows from the position of the last 64th row before them. */
async function rowsFrom(
  file: string,
  positions: readonly number[],
  { first, count }: RowRange,
  files: ContainedFiles,
): Promise<readonly Json[]> {
  const entry = Math.floor(first / rowsPerEntry);
  const position = positions[entry];
  const rows: Json[] = [];
  if (position === undefined || count < 1) return rows;
  let number = entry * rowsPerEntry;
  for await (const line of linesOf(file, files.chunks(file, position))) {
    if (line === "" || line === "\r") continue;
    if (number >= first) rows.push(JSON.parse(line) as Json);
    if (++number >= first + count) break;
  }
  return rows;
}

/** Reads all rows of a measurement. Throws if they are not those that the snapshot names. */
async function verifiedRows({ snapshotFile, samples }: RowsPlace, files: ContainedFiles) {
  const file = samplesPath(snapshotFile);
  const hash = createHash("sha256");
  const index = await findRows(files.chunks(file), { onChunk: (chunk) => hash.update(chunk) });
  const digest = hash.digest("hex");
  const check =
    samples === null ? { state: "damaged" } : await checkRows(snapshotFile, samples, digest, files);
  const isSound = check.state === "sound" || ("samples" in check && check.samples?.sha256 === digest);
  if (isSound) return index;
  throw dataError(
    file,
    `${index.rows} rows, edited or damaged after they were written`,
    "those that the snapshot names",
    "Load the page again; if this stays, restore the file, or measure again.",
  );
}

/**
 * Finds where every 64th row begins, from the line ends alone: a million rows as strings would take seconds.
 *
 * @param options.until Stops after the part of the file that contains this row. Default: the whole file.
 */
async function findRows(
  chunks: AsyncIterable<Uint8Array>,
  {
    onChunk,
    until = Infinity,
  }: { readonly onChunk?: (chunk: Uint8Array) => unknown; readonly until?: number },
): Promise<Pick<RowIndex, "positions" | "rows">> {
  const positions: number[] = [];
  let [rows, chunkStart, lineStart] = [0, 0, 0];
  const add = (bytes: number): void => {
    if (bytes > 0 && rows++ % rowsPerEntry === 0) positions.push(lineStart);
  };
  for await (const chunk of chunks) {
    onChunk?.(chunk);
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, end + 1)) {
      const isCarriageReturn = chunkStart + end - lineStart === 1 && chunk[end - 1] === 13;
      add(isCarriageReturn ? 0 : chunkStart + end - lineStart);
      lineStart = chunkStart + end + 1;
    }
    chunkStart += chunk.length;
    if (rows > until) return { positions, rows };
  }
  add(chunkStart - lineStart);
  return { positions, rows };
}

/** Longest line, in characters. */
const maxLineLength = 64 * 2 ** 20;

/**
 * Splits chunks of a file into lines without their ends, with the memory of one line.
 *
 * @param file Names the file in errors.
 * @throws Error for a line of more than 64 MiB.
 */
export async function* linesOf(
  file: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let rest = "";
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    if (rest.length > maxLineLength) throw tooLongLine(file);
    yield* lines;
  }
  if (rest !== "") yield rest;
}

const tooLongLine = (file: string): Error =>
  new Error(
    `${file}: got a line of more than ${maxLineLength / 2 ** 20} MiB, expected rows of at most that size. ` +
      "Restore the file, or measure again.",
  );
