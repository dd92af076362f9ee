import * as z from "zod";
import { basename, dirname } from "#platform";
import { snapshotSchema, type Snapshot, PeriodicEvalError, type Row } from "@periodic-eval/contracts";
import { isJson, parseContent } from "@periodic-eval/contracts/options";
import { makeFolder, writeFileAtomic, type Content } from "../files/atomic-file.ts";
import { storeError, type FileReader, type FileSystem } from "../files/file-system.ts";
import { hashSnapshot, sha256 } from "../files/hash-files.ts";
import { completeLines, readIfPresent } from "../files/read-file.ts";
import { nextPath, samplesPath } from "./layout.ts";

/**
 * Validates parsed JSON as a snapshot and keeps keys that the schema does not know.
 *
 * @param where Names the file in the error.
 * @throws PeriodicEvalError `store` with the `path` of the first wrong field.
 */
export const parseSnapshot = (value: unknown, where = "snapshot"): Snapshot =>
  parseContent(snapshotSchema, value, {
    code: "store",
    where,
    fix: "Compare it with the published JSON Schema (@periodic-eval/core/schema.json).",
  });

/**
 * Parses the JSON of a snapshot file without validating it.
 *
 * @param where Names the file in the error.
 * @throws PeriodicEvalError `store` if it is not JSON.
 */
function parseSnapshotJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "store",
      where,
      got: text.trim() === "" ? "an empty file" : `text that is not JSON (${(cause as Error).message})`,
      expected: "a snapshot",
      fix: "Move the file away: another program wrote it, or it was damaged after it was written.",
      cause,
    });
  }
}

/**
 * Returns the published JSON Schema (draft 2020-12) of a snapshot file, generated from the schema that the store validates
 * with. It allows additional keys everywhere, so that a later minor version may add some.
 */
export function snapshotJsonSchema(): Readonly<Record<string, unknown>> {
  return {
    $id: "urn:periodic-eval:snapshot:1",
    title: "periodic-eval snapshot",
    ...z.toJSONSchema(snapshotSchema, { io: "input" }),
  };
}

/** A snapshot and its file. */
export interface FoundSnapshot {
  readonly path: string;
  readonly snapshot: Snapshot;
}

/**
 * Writes the JSON file of a snapshot, after the file of its rows. Each write is atomic. A snapshot with rows is first written to
 * `nextPath`: if the process dies after its rows, readers recognize them by that file, and the next session renames it
 * into place.
 *
 * @returns The snapshot as written, with its fields `samples` and `sha256`.
 * @throws PeriodicEvalError `store` if the snapshot does not match the schema or cannot be written.
 */
export async function writeSnapshot(
  path: string,
  snapshot: Snapshot,
  rows: readonly Row[],
  fs: FileSystem,
): Promise<Snapshot> {
  const pieces = rowsText(rows);
  const file = basename(samplesPath(path));
  const samples = rows.length === 0 ? null : { file, rows: rows.length, sha256: sha256(...pieces) };
  const content = parseSnapshot({ ...snapshot, samples }, path);
  // The hash is the last field, whether or not the given snapshot has one.
  delete content.sha256;
  const record: Snapshot = { ...content, sha256: hashSnapshot(content) };
  const json = `${JSON.stringify(record, null, 2)}\n`;
  await makeFolder(dirname(path), fs);
  const next = nextPath(path);
  if (samples === null) {
    // An earlier write that failed half-way must not replace this snapshot later.
    await fs.remove(next).catch(() => undefined);
    await writeFileAtomic(path, json, fs);
    // A replaced snapshot may have had rows; the new one names none, so a file that stays is not read.
    await fs.remove(samplesPath(path)).catch(() => undefined);
  } else {
    await writeFileAtomic(next, json, fs);
    const write: Content = async (rowsFile) => {
      for (const piece of pieces) await rowsFile.write(piece);
    };
    await writeFileAtomic(samplesPath(path), write, fs);
    await renameNext(path, fs);
  }
  return record;
}

const rowsPerPiece = 4096;

/** Returns rows as JSON Lines, in pieces: all of it may be longer than a string can be. */
const rowsText = (rows: readonly Row[]): readonly string[] =>
  Array.from({ length: Math.ceil(rows.length / rowsPerPiece) }, (_, piece) =>
    rows
      .slice(piece * rowsPerPiece, (piece + 1) * rowsPerPiece)
      .map((row) => `${JSON.stringify(row)}\n`)
      .join(""),
  );

/** Renames the file at `nextPath` into the place of its snapshot. */
export async function renameNext(path: string, fs: FileSystem): Promise<void> {
  try {
    await fs.rename(nextPath(path), path);
    await fs.syncFolder(dirname(path));
  } catch (error) {
    throw storeError(path, error);
  }
}

/**
 * Parses and verifies the text of a snapshot file.
 *
 * @returns The snapshot, and whether its content is what was written.
 * @throws PeriodicEvalError `store` if it is not a snapshot.
 */
export function parseSealed(
  text: string,
  where: string,
): {
  readonly snapshot: Snapshot;
  readonly edited: { readonly got: string; readonly expected: string } | null;
} {
  const value = parseSnapshotJson(text, where);
  const snapshot = parseSnapshot(value, where);
  const sha256 = hashSnapshot(value as object);
  if (sha256 === snapshot.sha256) return { snapshot, edited: null };
  return {
    snapshot,
    edited: {
      got: `content with SHA-256 ${shortHash(sha256)}, edited or damaged after it was written`,
      expected: snapshot.sha256 === undefined ? "its SHA-256" : `SHA-256 ${shortHash(snapshot.sha256)}`,
    },
  };
}

/**
 * Parses a snapshot file that the user named.
 *
 * @throws PeriodicEvalError `store` if it is not a snapshot, or was edited after it was written.
 */
export function parseVerified(text: string, where: string): Snapshot {
  const { snapshot, edited } = parseSealed(text, where);
  if (edited === null) return snapshot;
  throw new PeriodicEvalError({
    code: "store",
    where,
    ...edited,
    fix: "Restore the file, or measure again.",
  });
}

/** Why the rows of a snapshot are not those that were written. */
interface DamagedRows {
  /** The file, and the line if one cannot be read. */
  readonly where: string;
  readonly got: string;
  readonly expected: string;
}

type RowsText = { readonly text: string; readonly damage: null } | { readonly damage: DamagedRows };

/**
 * Reads the rows of a snapshot as text and verifies them. Needs no lock: rows of a write that is under way, or that a crash
 * interrupted, are recognized by the file at `nextPath`.
 *
 * @param samples The field of the snapshot.
 */
export async function readRowsText(
  snapshotFile: string,
  samples: Snapshot["samples"],
  fs: FileReader,
): Promise<RowsText> {
  if (samples === null) return { text: "", damage: null };
  const file = samplesPath(snapshotFile);
  const text = await readIfPresent(file, fs);
  const check = await checkRows(snapshotFile, samples, text === null ? null : sha256(text), fs);
  if (check.state === "replaced") return readRowsText(snapshotFile, check.samples, fs);
  if (check.state === "sound") return { text: text!, damage: null };
  return { damage: damageOf(file, text, samples) };
}

/** The result of a check of rows. `replaced`: a writer replaced or superseded the snapshot since it was read. */
type RowsCheck =
  | { readonly state: "sound" | "damaged" }
  | { readonly state: "replaced"; readonly samples: Snapshot["samples"] };

/**
 * Compares the hash of a snapshot's rows, as they were read, with the snapshot.
 *
 * @param samples The field of the snapshot.
 * @param found Null if there is no file of rows.
 */
export async function checkRows(
  snapshotFile: string,
  samples: NonNullable<Snapshot["samples"]>,
  found: string | null,
  fs: FileReader,
): Promise<RowsCheck> {
  if (found !== null) {
    if (samples.sha256 === found) return { state: "sound" };
    if ((await samplesIn(nextPath(snapshotFile), fs))?.sha256 === found) return { state: "sound" };
  }
  const now = await samplesIn(snapshotFile, fs);
  const isSame = now?.sha256 === samples.sha256 && now?.rows === samples.rows;
  return isSame ? { state: "damaged" } : { state: "replaced", samples: now };
}

async function samplesIn(path: string, fs: FileReader): Promise<Snapshot["samples"]> {
  const text = await readIfPresent(path, fs);
  if (text === null) return null;
  try {
    return parseSnapshot(parseSnapshotJson(text, path), path).samples;
  } catch {
    return null;
  }
}

function damageOf(
  file: string,
  text: string | null,
  { rows, sha256: hash }: NonNullable<Snapshot["samples"]>,
): DamagedRows {
  const expected = `${rows} rows${hash === undefined ? "" : ` with SHA-256 ${shortHash(hash)}`}`;
  if (text === null) return { where: file, got: "no file of rows", expected };
  const lines = completeLines(text);
  const bad = lines.findIndex((line) => !isJson(line));
  if (bad !== -1) return { where: `${file}:${bad + 1}`, got: "a line that is not JSON", expected };
  const got = `${lines.length} rows with SHA-256 ${shortHash(sha256(text))}`;
  return {
    where: file,
    got: text === "" || text.endsWith("\n") ? got : `${got} and an incomplete line`,
    expected,
  };
}

const shortHash = (hash: string): string => `${hash.slice(0, 12)}…`;

/**
 * Reads the rows of a snapshot, from the `….samples.jsonl` in its folder, and verifies them.
 *
 * @param samples The field of the snapshot.
 * @throws PeriodicEvalError `store` if they cannot be read or are not those that were written.
 */
export async function readRows(
  snapshotFile: string,
  samples: Snapshot["samples"],
  fs: FileReader,
): Promise<readonly Row[]> {
  const read = await readRowsText(snapshotFile, samples, fs);
  if (read.damage === null) return completeLines(read.text).map((line) => JSON.parse(line) as Row);
  throw new PeriodicEvalError({
    code: "store",
    ...read.damage,
    fix: "The file was damaged after it was written: restore it, or supersede its snapshot to measure it again.",
  });
}
