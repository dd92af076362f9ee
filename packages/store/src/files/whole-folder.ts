import { basename, dirname, join, open, randomUUID, readdir, rename, rm, stat, process } from "#platform";
import { isRunning } from "../process/process.ts";
import { nodeFiles, storeError, syncFolder, checkFolder } from "./file-system.ts";

/** Names of folders that are being written, and of checkpoints and tokenizers that are being replaced or removed. */
const temporary = /^\.(?:(step_\d+|.+\.tokenizer)\.(draft-\w+|old|removed)|.+\.draft-[0-9a-f]{8})$/;
const beside = (path: string, kind: string) => join(dirname(path), `.${basename(path)}.${kind}`);

/**
 * Writes a folder atomically, also across a power cut: fills a draft next to it, syncs every file and folder in it, renames the
 * draft, and syncs the parent. An existing folder at `path` is removed last. After a crash between the two renames, `putBackFolders` or the next
 * write gives the old folder its name back.
 *
 * @throws PeriodicEvalError `store`, also if another process has taken over the run that the folder belongs to; the draft is removed
 *   then, and an existing folder is unchanged.
 */
export async function writeWholeFolder(path: string, fill: (draft: string) => Promise<void>): Promise<void> {
  const parent = dirname(path);
  // No other process has this draft, also not one that takes over while this one is stopped.
  const [draft, old] = [beside(path, `draft-${randomUUID().slice(0, 8)}`), beside(path, "old")];
  try {
    checkFolder(path);
    await putBack(path);
    await rm(old, { recursive: true, force: true });
    await nodeFiles.makeFolder(draft);
    await fill(draft);
    for (const file of await filesIn(draft)) await syncFile(join(draft, file));
    for (const folder of await foldersIn(draft)) await syncFolder(folder);
    checkFolder(path);
    if (await exists(path)) await rename(path, old);
    await rename(draft, path);
    await syncFolder(parent);
    await rm(old, { recursive: true, force: true });
  } catch (cause) {
    await rm(draft, { recursive: true, force: true }).catch(() => undefined);
    await putBackIfOurs(path).catch(() => undefined);
    throw storeError(path, cause, "a written folder");
  }
}

/** Restores the old folder after a crash between the two renames of `writeWholeFolder`, when neither folder has the name. */
async function putBack(path: string): Promise<void> {
  const old = beside(path, "old");
  if (!(await exists(path)) && (await exists(old))) await rename(old, path);
}

async function putBackIfOurs(path: string): Promise<void> {
  checkFolder(path);
  await putBack(path);
}

/** Restores all folders in `folder` that a crash in `writeWholeFolder` left without their name. */
export async function putBackFolders(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [] as string[])) {
    const [, target, kind] = temporary.exec(name) ?? [];
    if (kind === "old") await putBack(join(folder, target!));
  }
}

/**
 * Removes a folder atomically.
 *
 * @throws PeriodicEvalError `store` with the path and a fix.
 */
export async function removeWholeFolder(path: string): Promise<void> {
  checkFolder(path);
  const removed = beside(path, "removed");
  try {
    // Otherwise an older version would be put back as soon as the name is free.
    await rm(beside(path, "old"), { recursive: true, force: true });
    await rm(removed, { recursive: true, force: true });
    await rename(path, removed);
    // Otherwise a power cut could undo the rename and keep the removal of some files: a damaged folder.
    await syncFolder(dirname(path));
    await rm(removed, { recursive: true, force: true });
  } catch (error) {
    throw storeError(path, error);
  }
}

/**
 * Removes the leftovers of interrupted writes and removals in a folder.
 *
 * @throws PeriodicEvalError `store` with the path and a fix.
 */
export async function removeLeftovers(folder: string): Promise<void> {
  try {
    await putBackFolders(folder);
    for (const name of await readdir(folder).catch(() => [] as string[])) {
      if (temporary.test(name)) await rm(join(folder, name), { recursive: true, force: true });
    }
  } catch (error) {
    throw storeError(folder, error);
  }
}

/** Lists all files below a folder as sorted relative paths with `/`. */
export async function filesIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .replaceAll("\\", "/"),
    )
    .sort();
}

/** Returns a folder and all folders below it. */
async function foldersIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const inner = entries.filter((entry) => entry.isDirectory());
  return [folder, ...inner.map((entry) => join(entry.parentPath, entry.name))];
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Flushes a file to disk, so that its bytes survive a power failure. */
async function syncFile(path: string): Promise<void> {
  // Opened for reading, because a copy of a tokenizer's file can be read-only.
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } catch (error) {
    // Windows only syncs files that are open for writing.
    if ((error as NodeJS.ErrnoException).code !== "EPERM") throw error;
  } finally {
    await handle.close();
  }
}

/** The name of a file that is being written: the process and the number of the write in it. */
const temporaryFile = /^\..+\.(\d+)\.\d+\.tmp$/;

/** The folders of a run in which a training, its judges and its loggers write. All others belong to the user. */
const writtenFolders = [
  "checkpoints",
  "saved",
  "restored",
  "bad_rows",
  "reference",
  "verdicts",
  "loggers",
  "exports",
  "watch",
];

/**
 * Removes the leftovers of interrupted writes and removals in a run's folder, which this process has locked. Leaves temporary
 * files of other processes that run, such as a `rejudge`, and `periodic_eval`, which its store repairs.
 */
export async function removeRunLeftovers(runDir: string): Promise<void> {
  const list = (folder: string) => readdir(folder, { withFileTypes: true }).catch(() => []);
  const folders = [runDir];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    if (folder !== runDir) await removeLeftovers(folder);
    for (const entry of await list(folder)) {
      const path = join(folder, entry.name);
      const writer = temporaryFile.exec(entry.name)?.[1];
      if (entry.isDirectory() && (folder !== runDir || writtenFolders.includes(entry.name)))
        folders.push(path);
      else if (writer !== undefined && !(await isBeingWritten(path, Number(writer))))
        await rm(path, { force: true }).catch(() => undefined); // nobody reads it
    }
  }
}

async function isBeingWritten(path: string, writer: number): Promise<boolean> {
  // In a container, every process can have the number of this one.
  if (writer === process.pid)
    return stat(path).then(
      ({ mtimeMs }) => mtimeMs >= performance.timeOrigin,
      () => true,
    );
  return isRunning(writer);
}
