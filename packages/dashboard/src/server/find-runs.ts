import { join } from "node:path/posix";
import { errorMessage } from "@periodic-eval/core/internal";
import type { ContainedFiles } from "./contained-files.ts";

/** `callbacks`: measured while it was trained. `feedback`: trained on feedback. `results`: benchmarks of finished models. */
export type RunKind = "callbacks" | "feedback" | "results";

/** A folder that holds a run. */
export interface FoundRun {
  /** From the folder that is served, with `/` between; empty for that folder itself. */
  readonly path: string;
  readonly kind: RunKind;
  /** When something was last written to it. */
  readonly writtenAt: Date;
}

export interface FoundRuns {
  /** The newest first. */
  readonly runs: readonly FoundRun[];
  /** Folders that could not be looked into, and why. */
  readonly unreadable: readonly string[];
  /** Which folders were not looked into: those more than `mostLevels` below, or those behind the first 20,000; null: none. */
  readonly leftOut: "deeper" | "further" | null;
}

/** How far below a folder runs are looked for. */
export const mostLevels = 4;
const mostFolders = 20_000;

/** Folders that are looked into at once. */
const atOnce = 32;

/**
 * The runs in a folder and below it. Nothing is looked for within a run, but below results of benchmarks, for any folder may hold a
 * `metrics.json`, and below the folder that is served; nor in folders with a dot before their name.
 *
 * @param isShown whether a run counts; below one that does not the search goes on
 * @throws what `files.list` throws where the folder itself cannot be read
 */
export async function findRuns(
  folder: string,
  files: ContainedFiles,
  isShown: (run: FoundRun) => boolean,
): Promise<FoundRuns> {
  const runs: FoundRun[] = [];
  const unreadable: string[] = [];
  const found = (leftOut: FoundRuns["leftOut"]) => ({ runs: runs.sort(newestFirst), unreadable, leftOut });
  let seen = 0;
  let level: readonly string[] = [folder];
  for (let depth = 0; depth <= mostLevels && level.length > 0; depth++) {
    const below: string[] = [];
    for (let at = 0; at < level.length; at += atOnce) {
      if (seen >= mostFolders) return found("further");
      const some = level.slice(at, at + Math.min(atOnce, mostFolders - seen));
      seen += some.length;
      for (const { path, run, folders, problem } of await Promise.all(
        some.map((one) => inspectFolder(one, files)),
      )) {
        if (problem !== null && path === folder) throw problem;
        if (problem !== null) unreadable.push(errorMessage(problem));
        const counts = run !== null && isShown(run);
        if (counts) runs.push(run);
        if (!counts || mayHoldOthers(run)) below.push(...folders.map((name) => join(path, name)));
      }
    }
    level = below;
  }
  return found(level.length > 0 ? "deeper" : null);
}

const newestFirst = (a: FoundRun, b: FoundRun): number =>
  b.writtenAt.getTime() - a.writtenAt.getTime() || (a.path < b.path ? -1 : 1);

const mayHoldOthers = ({ kind, path }: FoundRun): boolean => kind === "results" || path === "";

/** The run that a folder is, where it is one, and the folders in it that are not the run's own. */
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

/** As `report` tells them apart. */
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

/** What a run of a suite has measured so far. */
export const partialResults = /^metrics\.(.+)\.partial\.json$/;
/** Held while feedback is trained on. */
export const feedbackLock = ".feedback.lock";

/** Of the file that is written last: the folder's own time changes with a page that is drawn. */
const lastWritten: Readonly<Record<RunKind, readonly string[]>> = {
  callbacks: ["periodic_eval/index.jsonl", "periodic_eval"],
  feedback: ["summary.json", ""],
  results: ["metrics.json", ""],
};

async function writtenAt(path: string, kind: RunKind, files: ContainedFiles): Promise<Date> {
  for (const name of lastWritten[kind]) {
    const time = await files.timeOf(join(path, name)).catch(() => null);
    if (time !== null) return time;
  }
  return files.timeOf(path);
}
