import { constants, type Dirent } from "node:fs";
import { open, readdir, readlink, realpath, stat, type FileHandle } from "node:fs/promises";
import { isAbsolute, join, relative, sep } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import type { FileReader } from "@periodic-eval/core/snapshots";

/**
 * The files below a folder, to be read and never written. Paths are relative to it (`""` is the folder), so that no message
 * says where on the machine it lies. What leads out of it, by whatever way, is not there: `ENOENT`, as for a file that is not.
 */
export interface ContainedFiles extends FileReader {
  /** When it was last written. */
  timeOf(path: string): Promise<Date>;
}

/** Largest file that is read, in bytes. */
const defaultMostBytes = 64 * 2 ** 20;

/**
 * @param realRoot a folder, by its real path
 * @param options.mostBytes of a file; larger ones are refused. Default 64 MiB.
 */
export function containedFiles(
  realRoot: string,
  { mostBytes = defaultMostBytes }: { readonly mostBytes?: number } = {},
): ContainedFiles {
  /** The real path of what is below the root; all links are followed first. */
  async function inside(path: string): Promise<string> {
    const names = namesOf(path);
    if (names === null) throw notThere(path);
    const real = await realpath(join(realRoot, ...names)).catch(() => null);
    if (real === null || !isWithin(realRoot, real)) throw notThere(path);
    return real;
  }

  async function foldersEntries(folder: string): Promise<readonly Dirent[]> {
    try {
      return await readdir(await inside(folder), { withFileTypes: true });
    } catch (error) {
      throw plain(folder, error);
    }
  }

  return {
    async list(folder) {
      const entries = await foldersEntries(folder);
      return entries.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }));
    },
    async read(path) {
      const real = await inside(path);
      let file: FileHandle;
      try {
        // A pipe would otherwise be waited for.
        file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      } catch (error) {
        throw plain(path, error);
      }
      try {
        // What was opened counts, not what its path meant a moment before.
        if (!isWithin(realRoot, await pathOf(file, real))) throw notThere(path);
        const { size } = await checkedStat(path, file);
        if (size > mostBytes) throw tooLarge(path, size, mostBytes);
        return (await file.readFile()).toString("utf8");
      } catch (error) {
        throw plain(path, error);
      } finally {
        await file.close();
      }
    },
    async timeOf(path) {
      try {
        return (await stat(await inside(path))).mtime;
      } catch (error) {
        throw plain(path, error);
      }
    },
  };
}

/**
 * The names on the way to a path below the root; null for one that is no such path: an absolute one, one with `..`, a backslash
 * (a separator elsewhere) or a NUL. Encodings are not looked through: `%2e%2e` is a name like any other.
 */
export function namesOf(path: string): readonly string[] | null {
  if (isAbsolute(path) || /[\0\\]/.test(path) || /^[a-z]:/i.test(path)) return null;
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  return names.includes("..") ? null : names;
}

const isWithin = (root: string, path: string): boolean => {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
};

/** Where an open file lies; on systems that cannot tell, the path that it was opened by. */
const pathOf = (file: FileHandle, opened: string): Promise<string> =>
  readlink(`/proc/self/fd/${file.fd}`).catch(() => opened);

async function checkedStat(path: string, file: FileHandle): Promise<{ readonly size: number }> {
  const found = await file.stat();
  if (found.isFile()) return found;
  throw refused(path, found.isDirectory() ? "a folder" : "no file of text", "a file");
}

const notThere = (path: string): Error =>
  Object.assign(new Error(`${path}: no such file or folder`), { code: "ENOENT" });

const tooLarge = (path: string, bytes: number, most: number): PeriodicEvalError =>
  refused(path, `a file of ${mebibytes(bytes)}`, `at most ${mebibytes(most)}`);

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

const refused = (where: string, got: string, expected: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "store",
    where,
    got,
    expected,
    fix: "Measurement at it with other tools, or move it away.",
  });

/** An error of the system without the path that it names. */
function plain(path: string, error: unknown): unknown {
  if (PeriodicEvalError.is(error) || !(error instanceof Error) || !("code" in error)) return error;
  const code = String(error.code);
  return Object.assign(new Error(`${path}: ${code}`), { code });
}
