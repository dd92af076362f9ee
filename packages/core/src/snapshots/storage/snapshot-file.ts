import { basename, dirname } from "node:path";
import type { Row } from "../../contracts/evaluation.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { parseSnapshot } from "../parse-snapshot.ts";
import { makeFolder, writeFileAtomic } from "./atomic-file.ts";
import type { FileReader, FileSystem } from "./file-system.ts";
import { samplesPath } from "./layout.ts";
import { readLines } from "./read-file.ts";

/**
 * Writes the JSON file of a snapshot, after the file of its rows. Each write is atomic, so a crash in between leaves the old
 * snapshot; if the snapshot replaces another, it may leave the new rows next to the old snapshot. A session puts the same rows
 * again with more fields, or repeats the measurement.
 *
 * @returns The snapshot as written, with its field `samples`.
 * @throws PeriodicEvalError `store` if the snapshot does not match the schema or cannot be written.
 */
export async function writeSnapshot(
  path: string,
  snapshot: Snapshot,
  rows: readonly Row[],
  fs: FileSystem,
): Promise<Snapshot> {
  const samples = rows.length === 0 ? null : { file: basename(samplesPath(path)), rows: rows.length };
  const record = parseSnapshot({ ...snapshot, samples }, path);
  await makeFolder(dirname(path), fs);
  if (samples !== null)
    await writeFileAtomic(samplesPath(path), rows.map((row) => `${JSON.stringify(row)}\n`).join(""), fs);
  await writeFileAtomic(path, `${JSON.stringify(record, null, 2)}\n`, fs);
  // A replaced snapshot may have had rows; the new one names none, so a file that stays is not read.
  if (samples === null) await fs.remove(samplesPath(path)).catch(() => undefined);
  return record;
}

/**
 * Reads the rows of a snapshot, from the `….samples.jsonl` in its folder.
 *
 * @throws PeriodicEvalError `store` if they cannot be read.
 */
export async function readRows(snapshotFile: string, fs: FileReader): Promise<readonly Row[]> {
  const file = samplesPath(snapshotFile);
  return (await readLines(file, fs)).map((line, at) => parseRow(line, `${file}:${at + 1}`));
}

function parseRow(line: string, where: string): Row {
  try {
    return JSON.parse(line) as Row;
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "store",
      where,
      got: "a line that is not JSON",
      expected: "a row",
      fix: "The file was damaged after it was written: supersede its snapshot to measure it again.",
      cause,
    });
  }
}
