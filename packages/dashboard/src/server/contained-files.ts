import { fileError } from "@periodic-eval/contracts/options";
import * as fs from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { basename, isAbsolute, join, relative, sep } from "node:path";
import { promisify } from "node:util";
import { PeriodicEvalError } from "@periodic-eval/core";
import type { FileReader } from "@periodic-eval/store";

/**
 * Read-only access to the files below a folder. Paths are relative to it (`""` is the folder itself), so that messages do not
 * reveal where it is. Any path that leads outside throws `ENOENT`, like a missing file. A file with several hard links is refused,
 * because its content may belong outside.
 */
export interface ContainedFiles extends FileReader {
  /** Returns the time of the last write to a file or folder. */
  timeOf(path: string): Promise<Date>;
  /** Reads a file of any size in parts, from a position in bytes; by default from its beginning. */
  chunks(path: string, from?: number): AsyncGenerator<Uint8Array, void, void>;
  /** Returns the entries of a folder with a stamp of each, which changes with its content; or one entry. Reads no content. */
  stamps(folder: string, name?: string): Promise<readonly FileStamp[]>;
}

export interface FileStamp {
  readonly name: string;
  readonly isFolder: boolean;
  /** Size and times. */
  readonly stamp: string;
}

/** Number of entries to look at before other work may run. */
const stampsAtOnce = 500;

/** Bytes of one chunk. */
const chunkBytes = 2 ** 20;

/** Larger files are read in the thread pool, so that other requests do not wait. */
const largestSyncRead = chunkBytes;

const defaultMaxFileBytes = 64 * 2 ** 20;

/**
 * Creates access to the files below a folder.
 *
 * @param realRoot The folder's path with all links resolved.
 * @param options.maxFileBytes Largest file to read, in bytes. Default: 64 MiB.
 */
export function containedFiles(
  realRoot: string,
  { maxFileBytes = defaultMaxFileBytes }: { readonly maxFileBytes?: number } = {},
): ContainedFiles {
  /** Returns the real path of a file or folder, after following all links; throws if it is outside the root. */
  async function resolveInside(path: string): Promise<string> {
    const names = namesOf(path);
    const real = names && (await realpath(join(realRoot, ...names)).catch(() => null));
    if (real === null || !isWithin(realRoot, real)) throw notFound(path);
    return real;
  }

  async function entriesOf(folder: string): Promise<readonly fs.Dirent[]> {
    try {
      return await readdir(await resolveInside(folder), { withFileTypes: true });
    } catch (error) {
      throw withoutAbsolutePath(folder, error);
    }
  }

  /** Synchronous, like `stampOf`: a run may have thousands of small files. The caller closes the file. */
  function openInside(path: string): number {
    const names = namesOf(path);
    if (names === null) throw notFound(path);
    const real = realPathOf(join(realRoot, ...names));
    if (real === null || !isWithin(realRoot, real)) throw notFound(path);
    const file = openForReading(path, real);
    // Check the opened file: its path may have changed since it was resolved.
    if (isWithin(realRoot, pathOf(file, real))) return file;
    fs.closeSync(file);
    throw notFound(path);
  }

  return {
    async list(folder) {
      const entries = await entriesOf(folder);
      return entries.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }));
    },
    async read(path) {
      const file = openInside(path);
      try {
        const { size } = checkedStat(path, file);
        if (size > maxFileBytes) throw tooLarge(path, size, maxFileBytes);
        return size > largestSyncRead ? await readWhole(file, "utf8") : fs.readFileSync(file, "utf8");
      } catch (error) {
        throw withoutAbsolutePath(path, error);
      } finally {
        fs.closeSync(file);
      }
    },
    async *chunks(path, from = 0) {
      const file = openInside(path);
      try {
        checkedStat(path, file);
        yield* chunksOf(file, from);
      } catch (error) {
        throw withoutAbsolutePath(path, error);
      } finally {
        fs.closeSync(file);
      }
    },
    async stamps(folder, name) {
      const real = await resolveInside(folder);
      if (name === undefined) return stampsOf(await entriesOf(folder), real);
      const stamp = stampOf(join(real, name), null);
      return stamp === null ? [] : [stamp];
    },
    async timeOf(path) {
      try {
        return (await stat(await resolveInside(path))).mtime;
      } catch (error) {
        throw withoutAbsolutePath(path, error);
      }
    },
  };
}

const readWhole = promisify(fs.readFile);
const readChunk = promisify(fs.read);

async function* chunksOf(file: number, from: number): AsyncGenerator<Uint8Array, void, void> {
  for (let position = from; ;) {
    // Only the bytes that were read leave this function.
    const { bytesRead, buffer } = await readChunk(
      file,
      Buffer.allocUnsafe(chunkBytes),
      0,
      chunkBytes,
      position,
    );
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

async function stampsOf(entries: readonly fs.Dirent[], folder: string): Promise<readonly FileStamp[]> {
  const found: FileStamp[] = [];
  for (const [at, entry] of entries.entries()) {
    if (at % stampsAtOnce === stampsAtOnce - 1) await new Promise((resolve) => setImmediate(resolve));
    const stamp = stampOf(join(folder, entry.name), entry);
    if (stamp !== null) found.push(stamp);
  }
  return found;
}

/** Synchronous: thousands of promises would take longer than the system calls. Null for an entry that is gone. */
function stampOf(path: string, entry: fs.Dirent | null): FileStamp | null {
  const found =
    (entry === null || entry.isSymbolicLink() ? fs.statSync(path, { throwIfNoEntry: false }) : undefined) ??
    fs.lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return null;
  const { size, ino, mtimeMs, ctimeMs } = found;
  const stamp = `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  return {
    name: basename(path),
    isFolder: found.isDirectory(),
    stamp,
  };
}

/**
 * Splits a path below the root into names. Returns null for an absolute path and for a path with `..` or a NUL; on Windows also for
 * one with a backslash, which separates names there, or with a drive. Does not decode names: `%2e%2e` is an ordinary name.
 */
export function namesOf(
  path: string,
  isWindows: boolean = process.platform === "win32",
): readonly string[] | null {
  if (isAbsolute(path) || path.includes("\0")) return null;
  if (isWindows && (path.includes("\\") || /^[a-z]:/i.test(path))) return null;
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  return names.includes("..") ? null : names;
}

const isWithin = (root: string, path: string): boolean => {
  const fromRoot = relative(root, path);
  return fromRoot === "" || (fromRoot !== ".." && !fromRoot.startsWith(`..${sep}`) && !isAbsolute(fromRoot));
};

/** Returns a path with all links resolved; null if there is nothing. */
function realPathOf(path: string): string | null {
  try {
    return fs.realpathSync.native(path);
  } catch {
    return null;
  }
}

function openForReading(path: string, real: string): number {
  // O_NONBLOCK keeps `open` from waiting for the writer of a pipe.
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
  try {
    return fs.openSync(real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    throw withoutAbsolutePath(path, error);
  }
}

/** Returns the path of an open file. On systems without `/proc`, returns the path that opened it. */
function pathOf(file: number, opened: string): string {
  try {
    return fs.readlinkSync(`/proc/self/fd/${file}`);
  } catch {
    return opened;
  }
}

function checkedStat(path: string, file: number): { readonly size: number } {
  const found = fs.fstatSync(file);
  // A second name may lie outside the served folder. A lock has two for a moment, and only its process is shown.
  if (found.isFile() && found.nlink > 1 && !path.endsWith(".lock"))
    throw unreadable(
      path,
      `a file with ${found.nlink} hard links`,
      "a file with one name",
      "Serve a copy of the folder: the file's other name may lie outside the served folder.",
    );
  if (found.isFile()) return found;
  throw unreadable(path, found.isDirectory() ? "a folder" : "a special file", "a regular file");
}

const notFound = (path: string): Error =>
  Object.assign(new Error(`${path}: no such file or folder`), { code: "ENOENT" });

const tooLarge = (path: string, bytes: number, max: number): PeriodicEvalError =>
  unreadable(path, `a file of ${mebibytes(bytes)}`, `at most ${mebibytes(max)}`);

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

const unreadable = (
  where: string,
  got: string,
  expected: string,
  fix = "Move it out of the folder, or open it with another tool.",
): PeriodicEvalError => fileError(where, got, expected, fix);

/** Returns a system error without the absolute path in its message. */
function withoutAbsolutePath(path: string, error: unknown): unknown {
  if (PeriodicEvalError.is(error) || !(error instanceof Error) || !("code" in error)) return error;
  const code = String(error.code);
  return Object.assign(new Error(`${path}: ${code}`), { code });
}
