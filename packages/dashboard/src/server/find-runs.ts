import { createHash, type Hash } from "node:crypto";
import { join } from "node:path/posix";
import { errorMessage } from "@periodic-eval/contracts/options";
import { readWriter } from "@periodic-eval/store";
import type { ContainedFiles } from "./contained-files.ts";

/** `callbacks`: measured during training. `feedback`: training on feedback. `results`: benchmarks of finished models. */
export type RunKind = "callbacks" | "feedback" | "results";

/** A folder that holds a run. */
export interface FoundRun {
  /** Path relative to the served folder, with `/` as the separator; empty for the served folder itself. */
  readonly path: string;
  readonly kind: RunKind;
  /** Time of the last write to the run. */
  readonly writtenAt: Date;
}

export interface FoundRuns {
  /** Newest first. */
  readonly runs: readonly FoundRun[];
  /** The errors for folders that could not be read. */
  readonly unreadable: readonly string[];
  /** Why some folders were not searched: `tooDeep`, below `maxLevels` levels; `tooMany`, after the first 20,000. Null if all were searched. */
  readonly unsearched: "tooDeep" | "tooMany" | null;
}

/** How many levels below a folder are searched for runs. */
export const maxLevels = 4;
const maxFolders = 20_000;

/** Number of folders to read concurrently. */
const concurrentReads = 32;

/**
 * Finds the runs in a folder and below it. Does not search inside a run, except below the served folder and below benchmark
 * results, because any folder may contain a `metrics.json`. Skips folders whose names begin with a dot.
 *
 * @param isShown Whether a run counts. The search continues below runs that do not.
 * @throws The error of `files.list` if the folder itself cannot be read.
 */
export async function findRuns(
  folder: string,
  files: ContainedFiles,
  isShown: (run: FoundRun) => boolean,
): Promise<FoundRuns> {
  const runs: FoundRun[] = [];
  const unreadable: string[] = [];
  let unsearched: FoundRuns["unsearched"] = null;
  const queue = [{ path: folder, depth: 0 }];
  let searched = 0;
  while (searched < queue.length) {
    const some = queue.slice(searched, Math.min(searched + concurrentReads, maxFolders));
    searched += some.length;
    if (some.length === 0) {
      unsearched = "tooMany";
      break;
    }
    const inspected = await Promise.all(some.map(({ path }) => inspectFolder(path, files)));
    for (const [at, { path, run, folders, problem }] of inspected.entries()) {
      if (problem !== null && path === folder) throw problem;
      if (problem !== null) unreadable.push(errorMessage(problem));
      const isFound = run !== null && isShown(run);
      if (isFound) runs.push(run);
      if (folders.length === 0 || (isFound && !mayContainOthers(run))) continue;
      const depth = some[at]!.depth + 1;
      if (depth > maxLevels) unsearched = "tooDeep";
      else queue.push(...folders.map((name) => ({ path: join(path, name), depth })));
    }
  }
  return { runs: runs.sort(newestFirst), unreadable, unsearched };
}

const newestFirst = (a: FoundRun, b: FoundRun): number =>
  b.writtenAt.getTime() - a.writtenAt.getTime() || (a.path < b.path ? -1 : 1);

const mayContainOthers = ({ kind, path }: FoundRun): boolean => kind === "results" || path === "";

/** Returns the run in a folder, if any, and the subfolders that may contain other runs. */
async function inspectFolder(path: string, files: ContainedFiles) {
  try {
    const entries = await files.list(path);
    const kind = await kindOf(path, entries, files);
    const folders = foldersOf(entries).filter((name) => name !== "periodic_eval");
    const run = kind === null ? null : { path, kind, writtenAt: await writtenAt(path, kind, files) };
    return { path, run, folders, problem: null };
  } catch (error) {
    return { path, run: null, folders: [], problem: error };
  }
}

type Entries = Awaited<ReturnType<ContainedFiles["list"]>>;

const foldersOf = (entries: Entries): readonly string[] =>
  entries
    .filter(({ name, isFolder }) => isFolder && !name.startsWith(".") && name !== "node_modules")
    .map(({ name }) => name);

/** Returns the kind of run in a folder, by the rules of the `report` command; null if there is no run. */
async function kindOf(path: string, entries: Entries, files: ContainedFiles): Promise<RunKind | null> {
  const has = (name: string) => entries.some((entry) => entry.name === name);
  if (entries.some(({ name, isFolder }) => isFolder && name === "periodic_eval")) return "callbacks";
  if (has("metrics.json") || entries.some(({ name }) => partialResults.test(name))) return "results";
  if (!has("summary.json") && !has(feedbackLock)) return null;
  for (const name of foldersOf(entries)) {
    const inside = await files.list(join(path, name)).catch(() => []);
    if (inside.some((entry) => entry.name === "metadata.json")) return "feedback";
  }
  return null;
}

/** Name of the file with the results of an unfinished suite run. */
export const partialResults = /^metrics\.(.+)\.partial\.json$/;
/** Lock file of a running training on feedback. */
export const feedbackLock = ".feedback.lock";

/** The files that a run writes last. The folder's time is less useful: it also changes when a page is written. */
const lastWritten: Readonly<Record<RunKind, readonly string[]>> = {
  callbacks: ["periodic_eval/index.jsonl", "periodic_eval"],
  feedback: ["summary.json", ""],
  results: ["metrics.json", ""],
};

async function writtenAt(path: string, kind: RunKind, files: ContainedFiles): Promise<Date> {
  for (const name of lastWritten[kind]) {
    const stamp = await files.stamp(join(path, name)).catch(() => null);
    if (stamp !== null) return stamp.writtenAt;
  }
  return (await files.stamp(path)).writtenAt;
}

/**
 * Returns a string that changes when a file of a run changes, and when the process that writes the run ends.
 *
 * @param depth `files`: looks at each file. `folders`: only at the files that a session writes with each snapshot, for a watcher.
 */
export async function versionOf(
  { path, kind }: FoundRun,
  files: ContainedFiles,
  depth: "files" | "folders",
): Promise<string> {
  const hash = createHash("sha1");
  if (kind === "callbacks") await addMeasuredRun(hash, join(path, "periodic_eval"), files, depth);
  else await addFolder(hash, path, files, () => true);
  return hash.digest("hex");
}

async function addMeasuredRun(
  hash: Hash,
  folder: string,
  files: ContainedFiles,
  depth: "files" | "folders",
): Promise<void> {
  const isAll = depth === "files";
  const isWatched = (name: string) => isAll || !/\.jsonl?$/.test(name) || name === "index.jsonl";
  await addFolder(hash, folder, files, isWatched);
  for (const { name, isFolder } of await files.list(folder).catch(() => [])) {
    // A watcher sees new snapshots by the time of their folder, and new losses by the size of their file.
    if (!isFolder || !(isAll || name === "training")) continue;
    await addFolder(hash, join(folder, name), files, () => true);
  }
}

/** Adds the stamps of a folder's entries. */
async function addFolder(
  hash: Hash,
  folder: string,
  files: ContainedFiles,
  isWatched: (name: string) => boolean,
): Promise<void> {
  // The page in the folder is written from its snapshots.
  for (const { name, stamp } of await files.stamps(folder).catch(() => [])) {
    if (!isWatched(name) || name === "index.html" || name.endsWith(".tmp")) continue;
    if (name.endsWith(".lock")) {
      // Its process renews a lock every few seconds, which changes the file but not the run.
      hash.update(JSON.stringify(await readWriter(join(folder, name), files)));
      continue;
    }
    hash.update(`${folder}/${name} ${stamp}\n`);
  }
}
