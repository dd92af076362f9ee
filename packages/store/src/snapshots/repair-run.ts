import { basename, dirname, join } from "#platform";
import { appendLines, writeFileAtomic, isTemporaryName } from "../files/atomic-file.ts";
import type { FileSystem } from "../files/file-system.ts";
import { sha256 } from "../files/hash-files.ts";
import { completeLines, readIfPresent, listIfPresent } from "../files/read-file.ts";
import { fileName, pathAfterNext, runPaths, samplesPath } from "./layout.ts";
import { inspectRun, type Scan } from "./scan-snapshots.ts";
import { type FoundSnapshot, parseSealed, renameNext } from "./snapshot-file.ts";
import { moveToSuperseded } from "./superseded.ts";

/** Returns the line of a snapshot in `index.jsonl`: enough for a table of the run without reading its snapshots. */
function lineOf(root: string, { path, snapshot }: FoundSnapshot): string {
  const { phase, id, step, run_step, pct, status, on, evaluation, primary_metric, created_at } = snapshot;
  const value = primary_metric === null ? null : (snapshot.metrics[primary_metric]?.value ?? null);
  const file = fileName(root, path);
  const about = { phase, id, step, run_step, pct, status, on, evaluation, primary_metric, value, created_at };
  return JSON.stringify({ file, ...about });
}

/** Appends the line of a new snapshot. Returns false, and appends nothing, if there is no index or it names the file already. */
export async function addToIndex(
  { index, root }: { readonly index: string; readonly root: string },
  entry: FoundSnapshot,
  fs: FileSystem,
): Promise<boolean> {
  const text = await readIfPresent(index, fs);
  if (text === null) return false;
  const line = lineOf(root, entry);
  const start = line.slice(0, line.indexOf(",") + 1); // {"file":"…",
  if (completeLines(text).some((known) => known.startsWith(start))) return false;
  await appendLines(index, [line], fs);
  return true;
}

/** Writes the index from the snapshots, in run order, unless it has the same lines already. */
export async function rebuildIndex(
  { index, root }: { readonly index: string; readonly root: string },
  entries: readonly FoundSnapshot[],
  fs: FileSystem,
): Promise<void> {
  const text = await readIfPresent(index, fs);
  const whole = entries.map((entry) => `${lineOf(root, entry)}\n`).join("");
  if (text !== whole && (text !== null || entries.length > 0)) await writeFileAtomic(index, whole, fs);
}

/**
 * Repairs what a crash left behind in a run: completes or removes interrupted writes, moves damaged and edited snapshots to
 * `superseded/` and rebuilds the index. Warns of everything that is damaged. The caller holds the run's lock.
 */
export async function repairRun(
  runDir: string,
  fs: FileSystem,
  warn: (message: string) => void,
): Promise<Scan> {
  const paths = runPaths(runDir);
  for (const message of await finishWrites(paths.root, fs)) warn(message);
  const scan = await inspectRun(runDir, fs);
  for (const { file, key, message, invalid } of scan.problems) {
    if (!invalid) {
      warn(`${file}: ${message}`);
      continue;
    }
    const target = { folder: dirname(file), name: basename(file, ".json"), suffix: ".damaged.json" } as const;
    await moveToSuperseded(runDir, join(paths.root, file), target, { key, why: message }, fs);
    warn(`moved ${file} to superseded/: ${message}`);
  }
  await rebuildIndex(paths, scan.found, fs);
  return scan;
}

/** Completes interrupted writes whose rows were written, and removes the files of all others. Returns what it did. */
export async function finishWrites(root: string, fs: FileSystem): Promise<readonly string[]> {
  const done: string[] = [];
  for (const file of await filesIn(root, fs)) {
    const path = pathAfterNext(file);
    if (path !== null && (await hasItsRows(file, path, fs))) {
      await renameNext(path, fs);
      done.push(`completed ${path}, whose write was interrupted`);
    } else if (path !== null || isTemporaryName(basename(file))) {
      await fs.remove(file).then(
        () => done.push(`removed ${file}, left over from an interrupted write`),
        () => undefined, // already gone, or not removable: nobody reads it
      );
    }
  }
  return done;
}

/** Whether the rows of the snapshot that waits at `next` were written. */
async function hasItsRows(next: string, path: string, fs: FileSystem): Promise<boolean> {
  const rows = await readIfPresent(samplesPath(path), fs);
  const text = await readIfPresent(next, fs);
  if (rows === null || text === null) return false;
  try {
    const { snapshot, edited } = parseSealed(text, next);
    return edited === null && snapshot.samples?.sha256 === sha256(rows);
  } catch {
    return false;
  }
}

async function filesIn(root: string, fs: FileSystem): Promise<readonly string[]> {
  const files: string[] = [];
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const { name, isFolder } of await listIfPresent(folder, fs))
      (isFolder ? folders : files).push(join(folder, name));
  }
  return files;
}
