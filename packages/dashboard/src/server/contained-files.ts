import { fileError } from "@periodic-eval/contracts/options";
import * as fs from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { basename, isAbsolute, join, sep } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import type { FileReader } from "@periodic-eval/store";

/**
 * Access to the files below a folder, to read them. Paths are relative to it (`""` is the folder itself), so that messages do not
 * reveal where it is. Any path that leads outside throws `ENOENT`, like a missing file.
 */
export interface ContainedFiles extends FileReader {
  /** Reads a file of any size in parts, from a position in bytes; by default from its beginning. */
  chunks(path: string, from?: number): AsyncGenerator<Uint8Array, void, void>;
  /** Returns the absolute path of a file or folder, with all links resolved, to write into it. */
  realPath(path: string): string;
  /** Returns the stamp of a file or folder. */
  stamp(path: string): Promise<FileStamp>;
  /** Returns the entries of a folder with their stamps. Reads no content. */
  stamps(folder: string): Promise<readonly FileStamp[]>;
}

export interface FileStamp {
  readonly name: string;
  /** Size and times: changes with the content. */
  readonly stamp: string;
  /** Time of the last write. */
  readonly writtenAt: Date;
}

/** Number of entries to look at before other work may run. */
const stampsAtOnce = 500;

/** Bytes of one chunk. Larger files are read in the thread pool, so that other requests do not wait. */
const chunkBytes = 2 ** 20;

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
  /**
   * Returns the real path of a file or folder, after following all links; throws if it is outside the root. Synchronous, like
   * `stampOf`: a run may have thousands of small files.
   */
  function resolveInside(path: string): string {
    const names = namesOf(path);
    const real = names && realPathOf(join(realRoot, ...names));
    if (real === null || !isWithin(realRoot, real)) throw notFound(path);
    return real;
  }

  async function entriesOf(folder: string): Promise<readonly fs.Dirent[]> {
    return withoutAbsolutePath(folder, async () => readdir(resolveInside(folder), { withFileTypes: true }));
  }

  /** Looks at a file before it is opened: opening a pipe would wait for its writer. */
  function fileAt(path: string): { readonly real: string; readonly size: number } {
    const real = resolveInside(path);
    const stats = fs.statSync(real);
    if (stats.isFile()) return { real, size: stats.size };
    throw unreadable(path, stats.isDirectory() ? "a folder" : "a special file", "a regular file");
  }

  return {
    async list(folder) {
      const entries = await entriesOf(folder);
      return entries.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }));
    },
    read: async (path) =>
      withoutAbsolutePath(path, async () => {
        const { real, size } = fileAt(path);
        if (size > maxFileBytes)
          throw unreadable(path, `a file of ${mebibytes(size)}`, `at most ${mebibytes(maxFileBytes)}`);
        return size > chunkBytes ? readFile(real, "utf8") : fs.readFileSync(real, "utf8");
      }),
    async *chunks(path, from = 0) {
      const opened = await withoutAbsolutePath(path, async () =>
        fs.createReadStream(fileAt(path).real, { start: from, highWaterMark: chunkBytes }),
      );
      yield* opened as AsyncIterable<Uint8Array>;
    },
    realPath: resolveInside,
    stamp: async (path) =>
      withoutAbsolutePath(path, async () => {
        const stamp = stampOf(resolveInside(path));
        if (stamp === null) throw notFound(path);
        return stamp;
      }),
    async stamps(folder) {
      const real = resolveInside(folder);
      const stamps: FileStamp[] = [];
      for (const [at, { name }] of (await entriesOf(folder)).entries()) {
        if (at % stampsAtOnce === stampsAtOnce - 1) await new Promise((resolve) => setImmediate(resolve));
        const stamp = stampOf(join(real, name));
        if (stamp !== null) stamps.push(stamp);
      }
      return stamps;
    },
  };
}

/** Synchronous: thousands of promises would take longer than the system calls. Null for an entry that is gone. */
function stampOf(path: string): FileStamp | null {
  const options = { throwIfNoEntry: false };
  // A link that leads nowhere has only its own times.
  const stats = fs.statSync(path, options) ?? fs.lstatSync(path, options);
  if (stats === undefined) return null;
  const { size, ino, mtime, mtimeMs, ctimeMs } = stats;
  return { name: basename(path), stamp: `${ino} ${size} ${mtimeMs} ${ctimeMs}`, writtenAt: mtime };
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

const isWithin = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);

/** Returns a path with all links resolved; null if there is nothing. */
function realPathOf(path: string): string | null {
  try {
    return fs.realpathSync.native(path);
  } catch {
    return null;
  }
}

const notFound = (path: string): Error =>
  Object.assign(new Error(`${path}: no such file or folder`), { code: "ENOENT" });

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

const unreadable = (where: string, got: string, expected: string): PeriodicEvalError =>
  fileError(where, got, expected, "Move it out of the folder, or open it with another tool.");

/** Runs `work`. A system error names only the path below the root. */
async function withoutAbsolutePath<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (PeriodicEvalError.is(error) || !(error instanceof Error) || !("code" in error)) throw error;
    const code = String(error.code);
    if (error.message.startsWith(`${path}: `)) throw error;
    throw Object.assign(new Error(`${path}: ${code}`), { code });
  }
}
