import { createHash, type Hash } from "node:crypto";
import { join } from "node:path/posix";
import { readWriter } from "@periodic-eval/store";
import { LRUCache } from "lru-cache";
import type { ContainedFiles } from "./contained-files.ts";
import type { FoundRun } from "./find-runs.ts";

/** Milliseconds within which a second change of a file may leave its times and size the same. */
const clockTickMs = 50;

/** The files of a run at one time, without their content. */
export interface RunVersion {
  /** Changes when a file of the run changes, and when the process that writes the run ends. */
  readonly text: string;
  /** Whether a later change is certain to change `text`. */
  readonly isSettled: boolean;
}

/**
 * Returns the version of a measured run.
 *
 * @param depth `files`: looks at each file. `folders`: only at the files that a session writes with each snapshot, for a watcher.
 */
export async function versionOf(
  { path, kind }: FoundRun,
  files: ContainedFiles,
  depth: "files" | "folders",
): Promise<RunVersion> {
  const hash = createHash("sha1");
  const newest =
    kind === "callbacks"
      ? await addMeasuredRun(hash, join(path, "periodic_eval"), files, depth)
      : await addFolder(hash, path, files, () => true);
  return {
    text: hash.digest("hex"),
    isSettled: performance.timeOrigin + performance.now() - newest > clockTickMs,
  };
}

async function addMeasuredRun(
  hash: Hash,
  folder: string,
  files: ContainedFiles,
  depth: "files" | "folders",
): Promise<number> {
  const isAll = depth === "files";
  const isWatched = (name: string) => isAll || !/\.jsonl?$/.test(name) || name === "index.jsonl";
  let newest = await addFolder(hash, folder, files, isWatched);
  for (const { name, isFolder } of await files.list(folder).catch(() => [])) {
    // A watcher sees new snapshots by the time of their folder, and new losses by the size of their file.
    if (!isFolder || !(isAll || name === "training")) continue;
    newest = Math.max(newest, await addFolder(hash, join(folder, name), files, () => true));
  }
  return newest;
}

/** Adds the stamps of a folder's entries, and returns the time of the newest. */
async function addFolder(
  hash: Hash,
  folder: string,
  files: ContainedFiles,
  isWatched: (name: string) => boolean,
): Promise<number> {
  let newest = 0;
  // The page in the folder is written from its snapshots.
  for (const { name, stamp, changedMs } of await files.stamps(folder).catch(() => [])) {
    if (!isWatched(name) || name === "index.html" || name.endsWith(".tmp")) continue;
    if (name.endsWith(".lock")) {
      // Its process renews a lock every few seconds, which changes the file but not the run.
      hash.update(JSON.stringify(await readWriter(join(folder, name), files)));
      continue;
    }
    hash.update(`${folder}/${name} ${stamp}\n`);
    newest = Math.max(newest, changedMs);
  }
  return newest;
}

interface Kept<T> {
  readonly version: string;
  readonly result: Promise<T>;
}

/**
 * Keeps results until their version changes, the least recently used first to go.
 *
 * @param maxSize Largest sum of sizes. A result larger than a quarter of it is not kept.
 * @param sizeOf Returns the size of a result.
 */
export function keptResults<T>(maxSize: number, sizeOf: (result: T) => number) {
  const kept = new LRUCache<string, Kept<T>>({ maxSize, maxEntrySize: Math.floor(maxSize / 4) });
  return {
    /** Whether a result of some version is kept. */
    has: (key: string): boolean => kept.has(key),
    /** Returns the result of a version, if it is kept or being made, and marks it as used. */
    find(key: string, version: RunVersion): Promise<T> | null {
      const entry = kept.get(key);
      return entry?.version === version.text ? entry.result : null;
    },
    add(key: string, version: RunVersion, result: Promise<T>): void {
      if (!version.isSettled) return;
      const entry = { version: version.text, result };
      kept.set(key, entry, { size: 1 });
      const isKept = () => kept.peek(key) === entry;
      result.then(
        (value) => isKept() && kept.set(key, entry, { size: Math.max(1, sizeOf(value)) }),
        () => isKept() && kept.delete(key),
      );
    },
  };
}
