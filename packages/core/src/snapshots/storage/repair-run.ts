import { basename, dirname, join } from "node:path";
import { isTemporaryName } from "./atomic-file.ts";
import type { FileSystem } from "./file-system.ts";
import { runPaths } from "./layout.ts";
import { listIfPresent } from "./read-file.ts";
import { rebuildIndex } from "./run-index.ts";
import { scanSnapshots, type FoundSnapshot } from "./scan-snapshots.ts";
import { moveToSuperseded } from "./superseded.ts";

/**
 * Repairs what a crash left behind in a run: removes temporary files, moves damaged snapshots to `superseded/` and rebuilds
 * the index. The caller holds the run's lock.
 *
 * @returns The snapshots of the run.
 */
export async function repairRun(
  runDir: string,
  fs: FileSystem,
  warn: (message: string) => void,
): Promise<readonly FoundSnapshot[]> {
  const { root, index } = runPaths(runDir);
  for (const file of await removeAllTemporaryFiles(root, fs))
    warn(`removed ${file}, left over from an interrupted write`);
  const { found, problems } = await scanSnapshots(root, fs);
  for (const { file, message, invalid } of problems) {
    if (!invalid) {
      warn(`ignored ${file}: ${message}`);
      continue;
    }
    const target = { folder: dirname(file), name: basename(file, ".json"), suffix: ".damaged.json" } as const;
    await moveToSuperseded(runDir, join(root, file), target, { key: null, why: message }, fs);
    warn(`moved ${file} to superseded/: ${message}`);
  }
  await rebuildIndex(index, root, found, fs);
  return found;
}

async function removeAllTemporaryFiles(root: string, fs: FileSystem): Promise<readonly string[]> {
  const removed: string[] = [];
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const { name, isFolder } of await listIfPresent(folder, fs)) {
      if (isFolder) folders.push(join(folder, name));
      else if (isTemporaryName(name)) {
        await fs.remove(join(folder, name)).then(
          () => removed.push(join(folder, name)),
          () => undefined, // already gone, or not removable: nobody reads it
        );
      }
    }
  }
  return removed;
}
