import { basename, dirname, join } from "node:path";
import { PeriodicEvalError } from "../../errors.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { errnoOf, nodeFiles, type FileReader, type FileSystem, type OpenFile } from "./files.ts";

/** What a file shall hold; a function is called once, with the file open. */
export type Content = string | ((file: Pick<OpenFile, "write">) => Promise<void>);

/** Drafts of `writeWhole`, and claims on the lock of a dead process. */
const temporary = /^(\..+\.\d+\.\d+\.tmp|\.lock\.[0-9a-f]{16})$/;
let count = 0;

/** Whether a file name is one that only a write in progress has. */
export function isTemporaryName(name: string): boolean {
  return temporary.test(name);
}

/** A name in the folder of `path` that no file has: dot-files are passed over by readers of the folder. */
export function temporaryBeside(path: string): string {
  return join(dirname(path), `.${basename(path)}.${process.pid}.${++count}.tmp`);
}

/** A claim on the lock of a dead process, beside that lock. */
const claim = /(?<=\.lock)\.[0-9a-f]{16}$/;

/**
 * Removes what writes that did not end left in a folder, of the files and locks that `of` names; for one who alone writes
 * those, and holds those locks. A folder that is not there has none.
 */
export async function removeDrafts(
  folder: string,
  of: (file: string) => boolean,
  fs: FileSystem = nodeFiles,
): Promise<void> {
  const entries = await fs.list(folder).catch(() => []);
  for (const { name } of entries) {
    const target = /^\.(.+)\.\d+\.\d+\.tmp$/.exec(name)?.[1] ?? name;
    const file = target.replace(claim, "");
    if (file !== name && of(file)) await fs.remove(join(folder, name)).catch(() => undefined);
  }
}

/**
 * Writes a file so that a reader sees the old content or the new, whatever dies when: a temporary file in the same
 * folder, fsync, rename, fsync of the folder. A failure removes the temporary file and leaves the old content.
 *
 * @param content the text, or what writes the file piece by piece (weights larger than memory).
 * @throws PeriodicEvalError `store`, naming the path and what to do; one that `content` throws passes through.
 */
export async function writeWhole(path: string, content: Content, fs: FileSystem = nodeFiles): Promise<void> {
  const draft = temporaryBeside(path);
  try {
    await writeNew(draft, content, fs);
    await fs.rename(draft, path);
    await fs.syncFolder(dirname(path));
  } catch (error) {
    await fs.remove(draft).catch(() => undefined);
    throw storeError(path, error);
  }
}

/** Creates a file with this content and syncs it. Not whole by itself: a crash can leave a part of it. */
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
 * Adds whole lines to a file of lines, creating it where it is absent. A torn last line (a crash in the middle of an
 * earlier append) is cut off first; a failed append is undone. Reads the file, so it is for small ones.
 */
export async function appendLines(
  path: string,
  lines: readonly string[],
  fs: FileSystem = nodeFiles,
): Promise<void> {
  try {
    const before = await repairTornLine(path, fs);
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
  } catch (error) {
    throw storeError(path, error);
  }
}

/** Cuts a last line that has no end. Returns the bytes that stay, 0 where there is no file. */
async function repairTornLine(path: string, fs: FileSystem): Promise<number> {
  const text = await readIfPresent(path, fs);
  if (text === null) return 0;
  const whole = Buffer.byteLength(text.slice(0, text.lastIndexOf("\n") + 1));
  if (whole !== Buffer.byteLength(text)) await fs.truncate(path, whole);
  return whole;
}

/** The whole lines of a file of lines; a torn last one is left out. Empty where there is no file. */
export async function readLines(path: string, fs: FileReader = nodeFiles): Promise<readonly string[]> {
  const text = (await readIfPresent(path, fs)) ?? "";
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line.trim() !== "");
}

/** The text of a file, null where there is none. */
export async function readIfPresent(path: string, fs: FileReader = nodeFiles): Promise<string | null> {
  try {
    return await fs.read(path);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) return null;
    throw storeError(path, error);
  }
}

/**
 * Reads a UTF-8 file that the user named; a byte-order mark at its start is dropped. `where` names the option that led
 * here (`capability.questions`). Throws a `data` error where the file cannot be read.
 */
export async function readTextFile(path: string, where: string, fs: FileSystem = nodeFiles): Promise<string> {
  try {
    return (await fs.read(path)).replace(/^\uFEFF/, "");
  } catch (error) {
    const code = errnoOf(error);
    throw new PeriodicEvalError({
      code: "data",
      where,
      got:
        code === "ENOENT"
          ? `"${path}", which does not exist`
          : `"${path}" (${reasons[code ?? ""] ?? errorMessage(error)})`,
      expected: "a readable text file",
      fix: `Check the path: it is relative to ${process.cwd()}.`,
      cause: error,
    });
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: "no space left on the device",
  EDQUOT: "disk quota exceeded",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EROFS: "read-only file system",
  ENOTDIR: "a file stands where a folder should be",
  EEXIST: "a file stands where a folder should be",
  EISDIR: "a folder stands where a file should be",
  EMFILE: "too many open files",
};

const fixes: Readonly<Record<string, string>> = {
  ENOSPC: "Free space on that disk and resume the run; what was written before is intact.",
  EDQUOT: "Free space under that quota and resume the run; what was written before is intact.",
  EACCES: "Give this user write access to the folder, or choose another run folder.",
  EPERM: "Give this user write access to the folder, or choose another run folder.",
  EROFS: "Choose a run folder on a writable file system.",
  ENOTDIR: "Move that file away, or choose another run folder.",
  EEXIST: "Move that file away, or choose another run folder.",
};

/**
 * The `store` error for a failed file operation: path, reason in words, what to do. One that is already an error of ours
 * passes through.
 *
 * @param expected what should have been there; a file by default.
 */
export function storeError(path: string, error: unknown, expected?: string): PeriodicEvalError {
  if (PeriodicEvalError.is(error)) return error;
  const code = errnoOf(error);
  const isFolder = code === "EEXIST" || code === "ENOTDIR";
  return new PeriodicEvalError({
    code: "store",
    where: path,
    got: code === null ? errorMessage(error) : `${code} (${reasons[code] ?? errorMessage(error)})`,
    expected:
      expected ??
      (isFolder
        ? "a folder, or nothing yet, at each part of the path"
        : "a path that can be read and written"),
    fix: fixes[code ?? ""] ?? "Check the folder and its disk, then resume the run.",
    cause: error,
  });
}
