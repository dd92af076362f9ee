import { dirname } from "#platform";
import type { RunProblem } from "../../contracts/snapshot.ts";
import { keyText } from "../run-order.ts";
import { makeFolder } from "./atomic-file.ts";
import { sha256 } from "./content-hash.ts";
import { storeError, type FileSystem } from "./file-system.ts";
import { fileName, samplesPath, snapshotPaths } from "./layout.ts";
import { problemOf } from "./problem.ts";
import { readIfPresent } from "./read-file.ts";
import type { RunIndex } from "./run-index.ts";
import type { FoundSnapshot } from "./snapshot-file.ts";

/** A snapshot in another file than the one that the store wrote. */
export interface Misplaced extends FoundSnapshot {
  /** The path that the store wrote it to. */
  readonly place: string;
}

/** Whether the store writes a snapshot to this path, in either layout. */
export function isNamedByStore(root: string, { path, snapshot }: FoundSnapshot): boolean {
  return pathsOf(root, snapshot).includes(path);
}

const pathsOf = (root: string, snapshot: FoundSnapshot["snapshot"]): readonly string[] => [
  ...snapshotPaths(root, "nested", snapshot),
  ...snapshotPaths(root, "flat", snapshot),
];

/**
 * Returns the snapshots whose file was renamed or exchanged with another file. The index says which file a snapshot belongs in; for a
 * snapshot that the index does not name, the store's naming does.
 *
 * @param root The folder of the index. `found` may cover only the folder of one phase in it.
 * @param folder The folder that `found` was read from.
 * @param files All files that may hold snapshots.
 */
export function misplacedSnapshots(
  root: string,
  found: readonly FoundSnapshot[],
  {
    folder,
    index,
    files,
  }: { readonly folder: string; readonly index: RunIndex | null; readonly files: readonly string[] },
): readonly Misplaced[] {
  const there = new Set(files);
  const placeOf = (one: FoundSnapshot): string | undefined => {
    // Names in an index are not followed: they could lead out of the folder.
    const file = index?.files.get(keyText(one.snapshot));
    const named = pathsOf(root, one.snapshot).find((possible) => fileName(root, possible) === file);
    return named ?? (isNamedByStore(root, one) || isNamedByStore(folder, one) ? one.path : undefined);
  };
  const held = new Set(found.map(placeOf));
  return found.flatMap((one) => {
    const { path, snapshot } = one;
    const [nested, ...flat] = pathsOf(root, snapshot);
    const free = dirname(path) === root ? (flat.find((possible) => !held.has(possible)) ?? flat[0]) : nested;
    const place = placeOf(one) ?? free!;
    held.add(place);
    // A file system that ignores case lists a folder as it was first written.
    const isSame = path === place || (fold(path) === fold(place) && !there.has(place));
    return isSame ? [] : [{ ...one, place }];
  });
}

const fold = (path: string): string => path.normalize("NFC").toLowerCase();

export function misplacedProblem(root: string, { path, snapshot, place }: Misplaced): RunProblem {
  const { phase, id, step, crossed } = snapshot;
  const key = { phase, id, step };
  const about = {
    file: fileName(root, path),
    kind: "misplaced",
    key,
    got: `the snapshot of ${keyText(key)}`,
    expected: `that snapshot in ${fileName(root, place)}`,
  } as const;
  return problemOf(about, crossed.includes("start"));
}

/**
 * Renames misplaced snapshots and their rows back. A crash in between leaves each snapshot whole, in its place or misplaced. If
 * another file has a snapshot's place, or its place holds rows that another snapshot needs, the snapshot is renamed to
 * `….moved.json`, so that its present name becomes free.
 *
 * @returns Whether a snapshot was moved.
 */
export async function restorePlaces(
  {
    found,
    misplaced,
  }: { readonly found: readonly FoundSnapshot[]; readonly misplaced: readonly Misplaced[] },
  fs: FileSystem,
): Promise<boolean> {
  if (misplaced.length === 0) return false;
  const lacking = await lackingRows(found, fs);
  const waiting = new Set(misplaced.map((one) => ({ ...one })));
  const byPlace = new Map([...waiting].map((one) => [one.place, one]));
  for (let isMoved = false; ; isMoved = true) {
    let isProgress = false;
    for (const one of waiting) {
      // The name that a snapshot leaves is often the place of another.
      for (
        let next: typeof one | undefined = one;
        next !== undefined && waiting.has(next) && (await moveSnapshot(next, next.place, lacking, fs));
        next = byPlace.get(next.path)
      ) {
        waiting.delete(next);
        isProgress = true;
      }
    }
    // Exchanged files make room for each other. Readers find a snapshot under any such name.
    for (const one of isProgress ? [] : waiting) {
      const path = pathAside(one.path);
      if (path === one.path || !(await moveSnapshot(one, path, lacking, fs))) continue;
      one.path = path;
      isProgress = true;
    }
    if (!isProgress) return isMoved;
  }
}

const pathAside = (path: string): string => path.replace(/(\.moved)?\.json$/, ".moved.json");

/** Returns the hashes of the rows that are not beside their snapshot: they may be beside another one. */
async function lackingRows(
  found: readonly FoundSnapshot[],
  fs: FileSystem,
): Promise<ReadonlySet<string | undefined>> {
  const lacking = new Set<string | undefined>();
  for (const { path, snapshot } of found) {
    const own = snapshot.samples?.sha256;
    if (own !== undefined && (await rowsHash(path, fs)) !== own) lacking.add(own);
  }
  return lacking;
}

/**
 * Moves the rows of a snapshot, then the snapshot. Replaces rows that no snapshot lacks.
 *
 * @param lacking The hashes of the rows that are not beside their snapshot.
 * @returns False if there is another snapshot at the target, or rows that one lacks.
 */
async function moveSnapshot(
  { path, snapshot }: FoundSnapshot,
  to: string,
  lacking: ReadonlySet<string | undefined>,
  fs: FileSystem,
): Promise<boolean> {
  try {
    if ((await readIfPresent(to, fs)) !== null) return false;
    await makeFolder(dirname(to), fs);
    const own = snapshot.samples?.sha256;
    // A crash can leave the rows aside and the snapshot in its old place.
    for (const from of own === undefined ? [] : [path, pathAside(path)]) {
      if (from === to || (await rowsHash(from, fs)) !== own) continue;
      const others = await rowsHash(to, fs);
      if (others !== null && others !== own && lacking.has(others)) return false;
      await renameDurably(samplesPath(from), samplesPath(to), fs);
      break;
    }
    await renameDurably(path, to, fs);
    return true;
  } catch (error) {
    throw storeError(path, error);
  }
}

/** Returns the hash of the rows beside a snapshot's path; null if there are none. */
async function rowsHash(path: string, fs: FileSystem): Promise<string | null> {
  const rows = await readIfPresent(samplesPath(path), fs);
  return rows === null ? null : sha256(rows);
}

async function renameDurably(from: string, to: string, fs: FileSystem): Promise<void> {
  await fs.rename(from, to);
  await fs.syncFolder(dirname(to));
  if (dirname(from) !== dirname(to)) await fs.syncFolder(dirname(from));
}
