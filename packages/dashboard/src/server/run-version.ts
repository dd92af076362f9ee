import { createHash, type Hash } from "node:crypto";
import { join } from "node:path/posix";
import { readWriter } from "@periodic-eval/store";
import type { ContainedFiles } from "./contained-files.ts";
import type { FoundRun } from "./find-runs.ts";

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
