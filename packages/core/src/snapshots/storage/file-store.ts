import { basename, dirname, join } from "node:path";
import { PeriodicEvalError } from "../../errors.ts";
import type { Row } from "../../contracts/evaluation.ts";
import { nodeFiles, type FileSystem } from "./files.ts";
import { keptRows } from "./kept-rows.ts";
import { checkKey, runPaths, samplesPath, snapshotName, snapshotPaths } from "./layout.ts";
import { takeLock, thisProcess, type LockOwner } from "./lock.ts";
import { keyText } from "../order.ts";
import { parseSnapshot, parseSnapshotText } from "../parse-snapshot.ts";
import { addToIndex, rebuildIndex } from "./run-index.ts";
import { listIfPresent, scanSnapshots } from "./scan.ts";
import type { Layout, Snapshot, SnapshotKey, SnapshotStore } from "../../contracts/snapshot.ts";
import { setAside } from "./superseded.ts";
import { isTemporaryName, readIfPresent, storeError, writeWhole } from "./atomic-file.ts";

export interface FileStoreOptions {
  /** Default `nested`: a folder per phase. Both layouts are read whatever is set. */
  readonly layout?: Layout;
  /** Told of what was mended or set aside; default `process.emitWarning`. */
  readonly onWarning?: (message: string) => void;
  /** For tests: file operations that fail or die. */
  readonly fs?: FileSystem;
  /** For tests: who takes the lock. */
  readonly owner?: LockOwner;
}

/**
 * The store on disk: `<runDir>/periodic_eval/<phase>/<id>_step_<N>.json`, rows beside it in `….samples.jsonl`, a line
 * each in `index.jsonl`, set-aside snapshots under `superseded/`. `put` writes the rows, then the snapshot, then the
 * line, each whole: a death in between leaves the snapshot as it was before. (Replacing a snapshot, it may leave the
 * new rows beside the old snapshot; a session puts the same rows with more said about them, or measures anew.)
 * Errors are `store` errors that name the path and what to do. The folder is created by the first write.
 */
export function fileStore(runDir: string, options: FileStoreOptions = {}): SnapshotStore {
  const { layout = "nested", fs = nodeFiles, owner = thisProcess } = options;
  const warn =
    options.onWarning ?? ((message: string) => process.emitWarning(message, "PeriodicEvalWarning"));
  const paths = runPaths(runDir);
  let release: (() => Promise<void>) | null = null;
  let queue: Promise<unknown> = Promise.resolve();
  /** Where each snapshot lies, as last seen. All there are while the lock is held: nobody else writes then. */
  let places = new Map<string, string>();

  /** Writes happen one after the other: grading that ends beside training may write while a window does. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = queue.then(work);
    queue = turn.catch(() => undefined);
    return turn;
  }

  async function scan() {
    const scanned = await scanSnapshots(paths.root, fs);
    places = new Map(scanned.found.map(({ path, snapshot }) => [keyText(snapshot), path]));
    return scanned;
  }

  async function takeOwnership(): Promise<void> {
    if (release !== null) return;
    await makeFolder(paths.root);
    const unlock = await takeLock(paths.lock, fs, owner);
    try {
      for (const file of await removeTemporaryFiles(paths.root, fs))
        warn(`removed ${file}, left by a write that did not end`);
      const { found, problems } = await scan();
      for (const { file, message, invalid } of problems) {
        if (invalid) {
          const into = {
            folder: dirname(file),
            name: basename(file, ".json"),
            suffix: ".damaged.json",
          } as const;
          await setAside(runDir, join(paths.root, file), into, { key: null, why: message }, fs);
        }
        warn(invalid ? `set ${file} aside into superseded/: ${message}` : `passed over ${file}: ${message}`);
      }
      await rebuildIndex(paths.index, paths.root, found, fs);
    } catch (error) {
      await unlock();
      throw error;
    }
    release = unlock;
  }

  async function makeFolder(path: string): Promise<void> {
    try {
      await fs.makeFolder(path);
    } catch (error) {
      throw storeError(path, error);
    }
  }

  async function readAt(path: string, key: SnapshotKey): Promise<Snapshot | null> {
    const text = await readIfPresent(path, fs);
    if (text === null) return null;
    try {
      const snapshot = parseSnapshotText(text, path);
      return keyText(snapshot) === keyText(key) ? snapshot : null;
    } catch {
      return null; // damaged: as good as absent, and set aside at the next opening
    }
  }

  async function find(key: SnapshotKey): Promise<{ path: string; snapshot: Snapshot } | null> {
    const known = places.get(keyText(key));
    for (const path of [...(known === undefined ? [] : [known]), ...snapshotPaths(paths.root, layout, key)]) {
      const snapshot = await readAt(path, key);
      if (snapshot !== null) return { path, snapshot };
    }
    if (release !== null && known === undefined) return null;
    return (await scan()).found.find(({ snapshot }) => keyText(snapshot) === keyText(key)) ?? null;
  }

  /** The path that a new snapshot takes: the first of its layout that holds no other one. */
  async function freePath(key: SnapshotKey): Promise<string> {
    for (const path of snapshotPaths(paths.root, layout, key)) {
      if ((await readIfPresent(path, fs)) === null) return path;
    }
    throw new PeriodicEvalError({
      code: "store",
      where: paths.root,
      got: `a file of another snapshot named ${snapshotName(key)}.json`,
      expected: `a free name for ${keyText(key)}`,
      fix: "Use the nested layout, or names that differ by more than case.",
    });
  }

  async function writeSnapshot(snapshot: Snapshot, rows: readonly Row[]): Promise<void> {
    checkKey(snapshot);
    await takeOwnership();
    const path = places.get(keyText(snapshot)) ?? (await freePath(snapshot));
    const samples = rows.length === 0 ? null : { file: basename(samplesPath(path)), rows: rows.length };
    const record = parseSnapshot({ ...snapshot, samples }, path);
    await makeFolder(dirname(path));
    if (samples !== null)
      await writeWhole(samplesPath(path), rows.map((row) => `${JSON.stringify(row)}\n`).join(""), fs);
    await writeWhole(path, `${JSON.stringify(record, null, 2)}\n`, fs);
    places.set(keyText(record), path);
    if (samples === null) await fs.remove(samplesPath(path)).catch(() => undefined); // there were none, or they are not read
    if (!(await addToIndex(paths.index, paths.root, { path, snapshot: record }, fs))) {
      await rebuildIndex(paths.index, paths.root, (await scan()).found, fs);
    }
  }

  return {
    open: () => inTurn(takeOwnership),
    put: (snapshot, rows) => inTurn(() => writeSnapshot(snapshot, rows)),
    get: async (key) => (await find(key))?.snapshot ?? null,
    async rows(key) {
      const found = await find(key);
      if (found === null || found.snapshot.samples === null) return [];
      return keptRows(found.path, fs);
    },
    list: async () => (await scan()).found.map(({ snapshot }) => snapshot),
    supersede: (key, why) =>
      inTurn(async () => {
        checkKey(key);
        await takeOwnership();
        const found = await find(key);
        if (found === null) return;
        const { phase, id, step } = key;
        const into = { folder: phase, name: snapshotName(key), suffix: ".json" } as const;
        await setAside(runDir, found.path, into, { key: { phase, id, step }, why }, fs);
        await rebuildIndex(paths.index, paths.root, (await scan()).found, fs);
      }),
    close: () =>
      inTurn(async () => {
        await release?.();
        release = null;
      }),
  };
}

async function removeTemporaryFiles(root: string, fs: FileSystem): Promise<readonly string[]> {
  const removed: string[] = [];
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const { name, isFolder } of await listIfPresent(folder, fs)) {
      if (isFolder) folders.push(join(folder, name));
      else if (isTemporaryName(name)) {
        await fs.remove(join(folder, name)).then(
          () => removed.push(join(folder, name)),
          () => undefined, // gone already, or it stays: it is never read
        );
      }
    }
  }
  return removed;
}
