import { basename, byteLength, dirname, join, process } from "#platform";
import { configError } from "@periodic-eval/contracts/options";
import { nodeFiles, storeError, type FileSystem, type OpenFile } from "./file-system.ts";
import { readIfPresent } from "./read-file.ts";

/** The content of a file: a string, or a function that writes it piece by piece. It is called once, with the file open. */
export type Content = string | ((file: Pick<OpenFile, "write">) => Promise<void>);

/**
 * Replaces a file atomically: a reader sees the old content or the new, even if the process or the machine dies. Writes a
 * temporary file in the same folder, syncs it, renames it and syncs the folder. A failure removes the temporary file and
 * leaves the old content.
 *
 * @param content A string, or a function for content larger than memory, such as weights.
 * @throws PeriodicEvalError `store` with the path and a fix; a PeriodicEvalError that `content` throws passes through.
 */
export async function writeFileAtomic(
  path: string,
  content: Content,
  fs: FileSystem = nodeFiles,
): Promise<void> {
  const draft = temporaryPath(path);
  try {
    await writeNew(draft, content, fs);
    await fs.rename(draft, path);
    await fs.syncFolder(dirname(path));
  } catch (error) {
    await fs.remove(draft).catch(() => undefined);
    throw storeError(path, error);
  }
}

/** Creates a file and syncs it. Not atomic: a crash can leave a part of the content. */
export async function writeNew(path: string, content: Content, fs: FileSystem): Promise<void> {
  const file = await fs.open(path, "create");
  try {
    await (typeof content === "string" ? file.write(content) : content(file));
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Appends lines to a file and creates it if it is absent. First removes an unfinished last line, which a crash during an
 * earlier append left behind; undoes its own append if it fails. Reads the whole file, so use it for small ones.
 *
 * @throws PeriodicEvalError `store` with the path and a fix.
 */
export async function appendLines(
  path: string,
  lines: readonly string[],
  fs: FileSystem = nodeFiles,
): Promise<void> {
  try {
    const before = await removeUnfinishedLine(path, fs);
    const file = await fs.open(path, "append");
    try {
      await file.write(lines.map((line) => `${line}\n`).join(""));
      await file.sync();
    } catch (error) {
      await fs.truncate(path, before).catch(() => undefined);
      throw error;
    } finally {
      await file.close();
    }
    // A power failure could lose a new file with all its synced lines.
    if (before === 0) await fs.syncFolder(dirname(path));
  } catch (error) {
    throw storeError(path, error);
  }
}

/** Removes a last line without a line end. Returns the remaining bytes, 0 if there is no file. */
async function removeUnfinishedLine(path: string, fs: FileSystem): Promise<number> {
  const text = await readIfPresent(path, fs);
  if (text === null) return 0;
  const complete = byteLength(text.slice(0, text.lastIndexOf("\n") + 1));
  if (complete !== byteLength(text)) await fs.truncate(path, complete);
  return complete;
}

/**
 * Creates a folder and its parents; does nothing if it exists.
 *
 * @throws PeriodicEvalError `store` with the path and a fix.
 */
export async function makeFolder(path: string, fs: FileSystem = nodeFiles): Promise<void> {
  try {
    await fs.makeFolder(path);
  } catch (error) {
    throw storeError(path, error);
  }
}

let count = 0;

/** Returns an unused path in the folder of `path`. The name starts with a dot, so readers of the folder ignore it. */
export function temporaryPath(path: string): string {
  return join(dirname(path), `.${basename(path)}.${process.pid}.${++count}.tmp`);
}

/** Names of temporary files, and of claims on the lock of a dead process. */
const temporaryName = /^(\..+\.\d+\.\d+\.tmp|\.lock\.[0-9a-f]{16})$/;

/** Whether a file name belongs to a write in progress, or to one that a crash interrupted. */
export function isTemporaryName(name: string): boolean {
  return temporaryName.test(name);
}

/** The end of the name of a claim on a dead process's lock. */
const claimSuffix = /(?<=\.lock)\.[0-9a-f]{16}$/;

/**
 * Removes the temporary files of interrupted writes from a folder, if there is such a folder. Call it only for files and locks
 * that no other process can be writing.
 *
 * @param isOwned Whether a file or lock of this name belongs to the caller.
 */
export async function removeTemporaryFiles(
  folder: string,
  isOwned: (file: string) => boolean,
  fs: FileSystem = nodeFiles,
): Promise<void> {
  const entries = await fs.list(folder).catch(() => []);
  for (const { name } of entries) {
    const target = /^\.(.+)\.\d+\.\d+\.tmp$/.exec(name)?.[1] ?? name;
    const file = target.replace(claimSuffix, "");
    if (file !== name && isOwned(file)) await fs.remove(join(folder, name)).catch(() => undefined);
  }
}

/**
 * Writes files and their folders. A file with the same content stays as it is. Writes none if one exists with other content.
 *
 * @param contents Content by path.
 * @param where The option that names the folder, for errors.
 * @throws PeriodicEvalError `config` for a file with other content; `store` for one that cannot be written.
 */
export async function writeOnce(contents: ReadonlyMap<string, string>, where: string): Promise<void> {
  const missing: (readonly [path: string, content: string])[] = [];
  for (const [path, content] of contents) {
    const present = await readIfPresent(path);
    if (present === null) missing.push([path, content]);
    else if (present !== content)
      throw configError({
        where,
        got: `${path}, which exists with other content`,
        expected: "a free name",
        fix: "Name another folder, or move that file away.",
      });
  }
  for (const [path, content] of missing) {
    await nodeFiles.makeFolder(dirname(path));
    await writeFileAtomic(path, content);
  }
}
