import { join, relative } from "node:path";
import type { Layout, RunProblem, Snapshot, SnapshotKey } from "../../contracts/snapshot.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { inRunOrder, keyText } from "../run-order.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { errnoOf, type FileReader, type FileSystem } from "./file-system.ts";
import { keyFromName, looksLikeSnapshot, snapshotName, snapshotPaths } from "./layout.ts";
import { problemOf } from "./problem.ts";
import { listIfPresent, readIfPresent } from "./read-file.ts";
import { parseSealed } from "./snapshot-file.ts";

export interface FoundSnapshot {
  readonly path: string;
  readonly snapshot: Snapshot;
}

/**
 * Reads and verifies all snapshots under `periodic_eval/`, in either layout; not their rows. `found` is in run order and leaves
 * out edited snapshots.
 *
 * @param keyOf Returns the key of a file that cannot be read, by its name; null if it is unknown.
 */
export async function scanSnapshots(
  root: string,
  fs: FileReader,
  keyOf: (file: string) => SnapshotKey | null = keyFromName,
): Promise<{ readonly found: readonly FoundSnapshot[]; readonly problems: readonly RunProblem[] }> {
  const byKey = new Map<string, FoundSnapshot>();
  const problems: RunProblem[] = [];
  for (const path of await snapshotFiles(root, fs)) {
    const file = fileName(root, path);
    try {
      const { snapshot, edited } = parseSealed(await fs.read(path), path);
      const { phase, id, step, crossed } = snapshot;
      const key = { phase, id, step };
      const earlier = byKey.get(keyText(snapshot));
      if (edited !== null)
        problems.push(problemOf({ file, kind: "edited", key, ...edited }, crossed.includes("start")));
      else if (earlier === undefined) byKey.set(keyText(snapshot), { path, snapshot });
      else {
        const got = `the same phase, id and step as ${fileName(root, earlier.path)}`;
        problems.push(problemOf({ file, kind: "duplicate", key, got, expected: "one file of each" }));
      }
    } catch (error) {
      if (errnoOf(error) === "ENOENT") continue; // moved since the folder was listed
      problems.push(unreadable(file, keyOf(file), error));
    }
  }
  const ordered = inRunOrder([...byKey.values()].map(({ snapshot }) => snapshot));
  return { found: ordered.map((snapshot) => byKey.get(keyText(snapshot))!), problems };
}

function unreadable(file: string, key: SnapshotKey | null, error: unknown): RunProblem {
  const expected = "a snapshot";
  if (!PeriodicEvalError.is(error))
    return problemOf({ file, kind: "unavailable", key, got: errorMessage(error), expected });
  const { got, expected: right } = error;
  const problem = problemOf({ file, kind: "unreadable", key, got, expected: right });
  return { ...problem, message: `${error.message} Effect: ${problem.effect}.` };
}

/** Returns a path relative to `periodic_eval/`, with slashes. */
export const fileName = (root: string, path: string): string => relative(root, path).replaceAll("\\", "/");

async function snapshotFiles(root: string, fs: FileReader): Promise<readonly string[]> {
  const paths: string[] = [];
  for (const { name, isFolder } of await listIfPresent(root, fs)) {
    if (!isFolder && looksLikeSnapshot(name)) paths.push(join(root, name));
    if (!isFolder || name === "superseded" || name.startsWith(".")) continue;
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
        const isOwn = (await readIfItIs(key, path, fs)) !== null;
        if (isOwn || (await readIfPresent(path, fs)) === null) return path;
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

/** Returns the snapshot at `path` if it has this key. A damaged or edited one counts as absent: the next opening moves it away. */
async function readIfItIs(key: SnapshotKey, path: string, fs: FileSystem): Promise<Snapshot | null> {
  const text = await readIfPresent(path, fs);
  if (text === null) return null;
  try {
    const { snapshot, edited } = parseSealed(text, path);
    return edited === null && keyText(snapshot) === keyText(key) ? snapshot : null;
  } catch {
    return null;
  }
}
