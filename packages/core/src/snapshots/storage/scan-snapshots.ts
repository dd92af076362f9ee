import { dirname, join } from "#platform";
import type { Layout, RunProblem, Snapshot, SnapshotKey } from "../../contracts/snapshot.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { grouped } from "../../statistics/grouping.ts";
import { inRunOrder, keyText } from "../run-order.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { errnoOf, type FileReader, type FileSystem } from "./file-system.ts";
import { fileName, keyFromName, looksLikeSnapshot, snapshotName, snapshotPaths } from "./layout.ts";
import { isNamedByStore, misplacedProblem, misplacedSnapshots, type Misplaced } from "./places.ts";
import { problemOf } from "./problem.ts";
import { listIfPresent, readIfPresent } from "./read-file.ts";
import { readIndex, type RunIndex } from "./run-index.ts";
import { parseSealed, shortHash, type FoundSnapshot } from "./snapshot-file.ts";

export interface Scan {
  /** In run order, without unreadable, edited and replaced snapshots. */
  readonly found: readonly FoundSnapshot[];
  readonly problems: readonly RunProblem[];
  /** Those of `found` whose file was renamed or exchanged with another. */
  readonly misplaced: readonly Misplaced[];
  /** As it was before the snapshots were read: a session that runs now adds a snapshot first and its line later. */
  readonly index: RunIndex | null;
}

/**
 * Reads all snapshots under `periodic_eval/`, in either layout, and verifies them by their own hashes and those of the index; not
 * their rows.
 *
 * @param indexPath Default: `index.jsonl` under `root`.
 */
export async function scanSnapshots(
  root: string,
  fs: FileReader,
  indexPath = join(root, "index.jsonl"),
): Promise<Scan> {
  const index = await readIndex(indexPath, fs);
  const keys = new Map(index?.lines.map(({ file, phase, id, step }) => [file, { phase, id, step }]));
  const sound: FoundSnapshot[] = [];
  const problems: RunProblem[] = [];
  const files = await snapshotFiles(root, fs);
  for (const path of files) {
    const file = fileName(root, path);
    try {
      const { snapshot, edited } = parseSealed(await fs.read(path), path);
      if (edited === null) sound.push({ path, snapshot });
      else problems.push(snapshotProblem(root, { path, snapshot }, { kind: "edited", ...edited }));
    } catch (error) {
      if (errnoOf(error) === "ENOENT") continue; // moved since the folder was listed
      problems.push(unreadable(file, keys.get(file) ?? keyFromName(file), error));
    }
  }
  /** The chosen file of each measurement, and its other copies. */
  const chosen = new Map<FoundSnapshot, readonly FoundSnapshot[]>();
  for (const copies of grouped(sound, ({ snapshot }) => keyText(snapshot)).values()) {
    // The index decides between files of one measurement, then their names: a copy must not take the place of the original.
    const seals = index?.seals.get(keyText(copies[0]!.snapshot));
    const sealed = copies.filter(({ snapshot }) => seals?.includes(snapshot.sha256));
    const candidates = sealed.length > 0 ? sealed : copies;
    const one = candidates.find((copy) => isNamedByStore(root, copy)) ?? candidates[0]!;
    chosen.set(
      one,
      copies.filter((copy) => copy !== one),
    );
  }
  const { found, replaced, problem } = await withoutReplaced([...chosen.keys()], { index, indexPath, fs });
  for (const one of found) {
    const got = `the same phase, id and step as ${fileName(root, one.path)}`;
    for (const copy of chosen.get(one) ?? [])
      problems.push(snapshotProblem(root, copy, { kind: "duplicate", got, expected: "one file of each" }));
  }
  // If only the chosen copy were left out, the next scan would choose another one.
  for (const one of replaced)
    for (const copy of [one, ...(chosen.get(one) ?? [])]) problems.push(replacedProblem(root, copy));
  if (problem !== null) problems.push(problem);
  const byPlace = new Map<SnapshotKey, FoundSnapshot>(found.map((one) => [one.snapshot, one]));
  const ordered = inRunOrder(found.map(({ snapshot }) => snapshot)).map((snapshot) => byPlace.get(snapshot)!);
  const misplaced = misplacedSnapshots(dirname(indexPath), ordered, { folder: root, index, files });
  const renamed = misplaced.map((one) => misplacedProblem(root, one));
  return { found: ordered, problems: [...problems, ...renamed], misplaced, index };
}

function snapshotProblem(
  root: string,
  { path, snapshot }: FoundSnapshot,
  about: Pick<RunProblem, "kind" | "got" | "expected">,
): RunProblem {
  const { phase, id, step, crossed } = snapshot;
  const file = fileName(root, path);
  return problemOf({ file, key: { phase, id, step }, ...about }, crossed.includes("start"));
}

/**
 * Leaves out snapshots that are whole, but not those that the index names: an older one, one of another run, or one whose hash
 * was computed again or removed. If the index names none of the run's snapshots, the index itself is the wrong file, which is the
 * problem.
 */
async function withoutReplaced(
  chosen: readonly FoundSnapshot[],
  { index, indexPath, fs }: Pick<Scan, "index"> & { readonly indexPath: string; readonly fs: FileReader },
): Promise<{
  readonly found: readonly FoundSnapshot[];
  readonly replaced: readonly FoundSnapshot[];
  readonly problem: RunProblem | null;
}> {
  const suspects = chosen.filter((one) => !agrees(one, index));
  if (suspects.length === 0) return { found: chosen, replaced: [], problem: null };
  // A session that runs now may have replaced a snapshot after the index was read, or after the snapshot was.
  const now = await readIndex(indexPath, fs);
  const replaced: FoundSnapshot[] = [];
  for (const one of suspects)
    if (!agrees(one, now) && (await sealOf(one.path, fs)) === one.snapshot.sha256) replaced.push(one);
  const isNamed = ({ snapshot }: FoundSnapshot) =>
    index!.seals.get(keyText(snapshot))?.includes(snapshot.sha256) === true;
  if (replaced.length > 1 && !chosen.some(isNamed)) {
    const got = `other hashes than those of ${replaced.length} snapshots`;
    const about = { file: "index.jsonl", kind: "index", key: null, got } as const;
    return {
      found: chosen,
      replaced: [],
      problem: problemOf({ ...about, expected: "the index of this run" }),
    };
  }
  return { found: chosen.filter((one) => !replaced.includes(one)), replaced, problem: null };
}

function replacedProblem(root: string, one: FoundSnapshot): RunProblem {
  const { sha256 } = one.snapshot;
  const got =
    sha256 === undefined
      ? "a snapshot without its sha256, edited after it was written"
      : `another snapshot, with SHA-256 ${shortHash(sha256)}, in its place`;
  const expected = "the snapshot that index.jsonl names";
  return snapshotProblem(root, one, { kind: "edited", got, expected });
}

/** Whether a line of the index has the snapshot's hash, or no line has a hash for its key. */
function agrees({ snapshot }: FoundSnapshot, index: RunIndex | null): boolean {
  const seals = index?.seals.get(keyText(snapshot)) ?? [undefined];
  return seals.includes(undefined) || seals.includes(snapshot.sha256);
}

/** Returns the `sha256` that a file names, without verifying it; undefined if it has none. */
export async function sealOf(path: string, fs: FileReader): Promise<unknown> {
  try {
    return (JSON.parse((await readIfPresent(path, fs)) ?? "null") as { sha256?: unknown } | null)?.sha256;
  } catch {
    return undefined;
  }
}

function unreadable(file: string, key: SnapshotKey | null, error: unknown): RunProblem {
  const expected = "a snapshot";
  // Node's RangeErrors about files have a code.
  if (error instanceof RangeError && errnoOf(error) === null)
    return problemOf({ file, kind: "unreadable", key, got: "JSON that is nested too deeply", expected });
  if (!PeriodicEvalError.is(error))
    return problemOf({ file, kind: "unavailable", key, got: errorMessage(error), expected });
  const { got, expected: right } = error;
  const problem = problemOf({ file, kind: "unreadable", key, got, expected: right });
  return { ...problem, message: `${error.message} Effect: ${problem.effect}.` };
}

async function snapshotFiles(root: string, fs: FileReader): Promise<readonly string[]> {
  const paths: string[] = [];
  for (const { name, isFolder } of await listIfPresent(root, fs)) {
    if (!isFolder && looksLikeSnapshot(name)) paths.push(join(root, name));
    if (!isFolder || name === "superseded" || !/^(?!\.).*$/.test(name)) continue;
    const inside = await listIfPresent(join(root, name), fs);
    paths.push(
      ...inside
        .filter((file) => !file.isFolder && looksLikeSnapshot(file.name))
        .map((file) => join(root, name, file.name)),
    );
  }
  return paths.sort();
}

/** Finds the files of snapshots by key and remembers them, so that most searches read one file. */
export function snapshotFinder(root: string, layout: Layout, fs: FileSystem) {
  let paths = new Map<string, string>();

  function rememberAll(found: readonly FoundSnapshot[]): void {
    paths = new Map(found.map(({ path, snapshot }) => [keyText(snapshot), path]));
  }

  async function scan(): Promise<readonly FoundSnapshot[]> {
    const { found } = await scanSnapshots(root, fs);
    rememberAll(found);
    return found;
  }

  /** Whether the file at `path` holds a snapshot of this key, or a copy of one that the store reads from another file. */
  function isFree(text: string, path: string, key: SnapshotKey): boolean {
    const held = soundSnapshot(text, path);
    if (held === null) return false;
    const place = paths.get(keyText(held));
    return keyText(held) === keyText(key) || (place !== undefined && place !== path);
  }

  return {
    scan,
    rememberAll,
    remember(key: SnapshotKey, path: string): void {
      paths.set(keyText(key), path);
    },
    /**
     * Returns a snapshot and its path, or null.
     *
     * @param isLocked Whether this process holds the run's lock. All snapshots are then remembered, because no other process
     *   writes.
     */
    async find(key: SnapshotKey, isLocked: boolean): Promise<FoundSnapshot | null> {
      const known = paths.get(keyText(key));
      const candidates = [...(known === undefined ? [] : [known]), ...snapshotPaths(root, layout, key)];
      for (const path of candidates) {
        const snapshot = await readIfItIs(key, path, fs);
        if (snapshot !== null) return { path, snapshot };
      }
      if (isLocked && known === undefined) return null;
      return (await scan()).find(({ snapshot }) => keyText(snapshot) === keyText(key)) ?? null;
    },
    /**
     * Returns the path to write a snapshot to: the remembered one, or the first path of the layout without a file of another
     * snapshot. A write that failed after its rename leaves a file that is not remembered.
     *
     * @throws PeriodicEvalError `store` if other snapshots have all its names.
     */
    async pathToWrite(key: SnapshotKey): Promise<string> {
      const known = paths.get(keyText(key));
      if (known !== undefined) return known;
      for (const path of snapshotPaths(root, layout, key)) {
        const text = await readIfPresent(path, fs);
        if (text === null || isFree(text, path, key)) return path;
      }
      throw new PeriodicEvalError({
        code: "store",
        where: root,
        got: `a file of another snapshot named ${snapshotName(key)}.json`,
        expected: `a free name for ${keyText(key)}`,
        fix: "Use the nested layout, or names that differ by more than case.",
      });
    },
  };
}

/** Returns the snapshot at `path` if it has this key. */
async function readIfItIs(key: SnapshotKey, path: string, fs: FileSystem): Promise<Snapshot | null> {
  const text = await readIfPresent(path, fs);
  const snapshot = text === null ? null : soundSnapshot(text, path);
  return snapshot !== null && keyText(snapshot) === keyText(key) ? snapshot : null;
}

/** Parses a snapshot. A damaged or edited one counts as absent: the next opening moves it away. */
function soundSnapshot(text: string, path: string): Snapshot | null {
  try {
    const { snapshot, edited } = parseSealed(text, path);
    return edited === null ? snapshot : null;
  } catch {
    return null;
  }
}
