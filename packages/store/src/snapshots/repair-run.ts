import { basename, dirname, join } from "#platform";
import { isTemporaryName } from "../files/atomic-file.ts";
import { sha256 } from "../files/content-hash.ts";
import type { FileSystem } from "../files/file-system.ts";
import { pathAfterNext, runPaths, samplesPath } from "./layout.ts";
import { listIfPresent, readIfPresent } from "../files/read-file.ts";
import { rebuildIndex } from "./run-index.ts";
import { inspectRun, type Scan } from "./scan-snapshots.ts";
import { parseSealed, renameNext } from "./snapshot-file.ts";
import { moveToSuperseded } from "./superseded.ts";

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
  for (const { file, key, kind, message, invalid } of scan.problems) {
    if (!invalid) {
      warn(`${kind === "duplicate" ? "ignored " : ""}${file}: ${message}`);
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
