import { basename, dirname, join } from "#platform";
import { isTemporaryName } from "./atomic-file.ts";
import { sha256 } from "./content-hash.ts";
import type { FileSystem } from "./file-system.ts";
import { inspectRun, type Inspection } from "./inspect-run.ts";
import { fileName, pathAfterNext, runPaths, samplesPath } from "./layout.ts";
import { restorePlaces } from "./places.ts";
import { listIfPresent, readIfPresent } from "./read-file.ts";
import { rebuildIndex } from "./run-index.ts";
import { parseSealed, renameNext } from "./snapshot-file.ts";
import { moveToSuperseded } from "./superseded.ts";

/**
 * Repairs what a crash left behind in a run: completes or removes interrupted writes, moves damaged and edited snapshots to
 * `superseded/`, renames misplaced ones back and rebuilds the index. Warns of everything that is damaged or missing. The caller
 * holds the run's lock.
 *
 * @param wasKilled Whether a killed session left its lock.
 */
export async function repairRun(
  runDir: string,
  fs: FileSystem,
  { warn, wasKilled }: { readonly warn: (message: string) => void; readonly wasKilled: boolean },
): Promise<Inspection> {
  const { root, index } = runPaths(runDir);
  for (const message of await finishWrites(root, fs)) warn(message);
  const found = await inspectRun(runDir, fs, {}, wasKilled);
  const places = new Set(found.misplaced.map(({ place }) => fileName(root, place)));
  const moved = found.problems.filter(
    ({ kind, file, invalid }) => invalid || (kind === "duplicate" && places.has(file)),
  );
  for (const { file, key, message } of moved) {
    const target = { folder: dirname(file), name: basename(file, ".json"), suffix: ".damaged.json" } as const;
    await moveToSuperseded(runDir, join(root, file), target, { key, why: message }, fs);
    warn(`moved ${file} to superseded/: ${message}`);
  }
  const isRestored = await restorePlaces(found, fs);
  // Rows that are damaged or missing beside a misplaced snapshot may be those of the other one.
  const inspection = isRestored ? await inspectRun(runDir, fs, {}, wasKilled) : found;
  const left = inspection.problems.filter((one) => !moved.includes(one));
  const restored = isRestored ? found.problems.filter(({ kind }) => kind === "misplaced") : [];
  for (const { file, kind, message } of [...restored, ...left])
    warn(`${kind === "duplicate" ? "ignored " : ""}${file}: ${message}`);
  await rebuildIndex(index, root, inspection.found, inspection.missing, fs);
  return { ...inspection, problems: [...moved, ...restored, ...left] };
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
