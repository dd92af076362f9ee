import {
  dirname,
  existsSync,
  join,
  link,
  mkdir,
  mkdirSync,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  resolve,
  rmdir,
  stat,
  statSync,
  truncate,
  unlink,
} from "#platform";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";

export interface OpenFile {
  /** Appends bytes, or a string as UTF-8. */
  write(content: string | Uint8Array): Promise<void>;
  /** Makes the bytes durable. Before it returns, a crash of the machine (not of the process) may lose them. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** The file operations that the store uses. Tests pass an implementation that fails or dies at any of them. */
export interface FileSystem {
  /** Creates the folder and its parents durably; does nothing if it exists. */
  makeFolder(path: string): Promise<void>;
  /** Returns the entries of a folder; throws `ENOENT` if there is none. */
  list(folder: string): Promise<readonly { readonly name: string; readonly isFolder: boolean }[]>;
  /** Returns the content of a UTF-8 file. */
  read(path: string): Promise<string>;
  /** Opens a file for writing. `"create"` throws `EEXIST` if the path exists. */
  open(path: string, mode: "create" | "append"): Promise<OpenFile>;
  truncate(path: string, bytes: number): Promise<void>;
  /**
   * Overwrites the start of a file in place with the string that `change` returns for its content; null changes nothing. A file that
   * another process renames to `path` in the meantime is not touched.
   */
  overwrite(path: string, change: (content: string) => string | null): Promise<void>;
  /** Renames a file and replaces `to` atomically. */
  rename(from: string, to: string): Promise<void>;
  /** Gives a file a second name; throws `EEXIST` if `to` exists. */
  link(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Makes renames and creations in a folder durable, if the platform can. */
  syncFolder(folder: string): Promise<void>;
}

/** The operations that readers need. */
export type FileReader = Pick<FileSystem, "list" | "read">;

/** The files of this machine. Each change checks first that this process still holds the locks of the folders in which it is. */
export const nodeFiles: FileSystem = {
  async makeFolder(path) {
    checkFolder(path);
    await makeMissingFolders(resolve(path));
  },
  async list(folder) {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }));
  },
  async read(path) {
    const stats = await stat(path);
    // A pipe would be waited for, and a device may never end.
    if (!stats.isFile() && !stats.isDirectory())
      throw Object.assign(new Error(`${path} is a pipe, socket or device`), { code: "EINVAL" });
    return readFile(path, "utf8");
  },
  async open(path, mode) {
    checkFolder(path);
    const handle = await open(path, mode === "create" ? "wx" : "a");
    return {
      async write(content) {
        checkFolder(path);
        await handle.writeFile(content, "utf8");
      },
      sync: () => handle.sync(),
      close: () => handle.close(),
    };
  },
  truncate: checked(truncate),
  async overwrite(path, change) {
    const handle = await open(path, "r+");
    try {
      const text = change(await handle.readFile("utf8"));
      if (text !== null) await handle.write(text, 0);
    } finally {
      await handle.close();
    }
  },
  rename: checked(rename),
  link: checked(link),
  remove: checked(unlink),
  syncFolder,
};

/** Returns a change of files that first checks the folder of each path. */
function checked<A extends readonly unknown[]>(
  change: (...args: A) => Promise<void>,
): (...args: A) => Promise<void> {
  return async (...args) => {
    for (const path of args) if (typeof path === "string") checkFolder(path);
    await change(...args);
  };
}

/** The folders whose names this process has made durable. All copies of this module in the process share them. */
const durableFolders = ((globalThis as { [key: symbol]: unknown })[Symbol.for("periodic-eval.durable")] ??=
  new Map<string, true>()) as Map<string, true>;

/**
 * Creates a folder and its parents, and syncs each, so that a power failure does not lose the folder with all that was synced in
 * it: also one that exists, because a process that created it or files in it may have been killed before its sync.
 * Node's `recursive` does not, and never returns where the file system has no such folder (`/proc`).
 *
 * @param created Receives the folders that it creates, parents first.
 */
async function makeMissingFolders(path: string, created: string[] = []): Promise<void> {
  for (let isRetry = false; ; isRetry = true) {
    try {
      await mkdir(path);
      created.push(path);
      durableFolders.delete(path);
      return await syncNames(path);
    } catch (error) {
      if (await isFolder(path)) return syncNames(path);
      if (isRetry || errnoOf(error) !== "ENOENT" || dirname(path) === path) throw error;
      await makeMissingFolders(dirname(path), created);
    }
  }
}

/** Makes the names in a folder, its name and those of its parents durable, once in a process. */
async function syncNames(path: string): Promise<void> {
  if (durableFolders.has(path)) return;
  await syncFolder(path);
  const parent = dirname(path);
  if (parent !== path) {
    // Also if it was synced before: the folder may be new in it.
    await syncFolder(parent);
    await syncNames(parent);
  }
  durableFolders.set(path, true);
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );

/** Creates a folder and its parents without Node's `recursive`, like `FileSystem.makeFolder` but not durably. */
export function makeFolderSync(path: string): void {
  checkFolder(path);
  try {
    mkdirSync(path);
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
    const parent = dirname(resolve(path));
    if (errnoOf(error) !== "ENOENT" || existsSync(parent)) throw error;
    makeFolderSync(parent);
    mkdirSync(path);
  }
}

/**
 * Checks that a folder, which need not exist, can be created and written to. Leaves nothing behind.
 *
 * @throws PeriodicEvalError `store` with the path and a fix.
 */
export async function checkWritable(folder: string): Promise<void> {
  const created: string[] = [];
  try {
    await makeMissingFolders(resolve(folder), created);
    created.push(await mkdtemp(join(folder, ".writable.")));
  } catch (error) {
    throw storeError(folder, error, "a folder that can be created and written to", "Choose another folder.");
  } finally {
    // A folder stays if another process has written into it in the meantime.
    for (const path of created.reverse()) await rmdir(path).catch(() => undefined);
  }
}

/** Makes renames and creations in a folder durable (they survive a crash of the machine), if the platform can. */
export async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, "r");
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (!unsyncable.includes(errnoOf(error) ?? "")) throw error;
  }
}

/** Windows cannot open a folder, and some file systems cannot sync one: renames are then as durable as they can be. */
const unsyncable = ["EISDIR", "EPERM", "EINVAL", "ENOTSUP", "EACCES"];

/** Returns the system error code of a failed operation (`ENOENT`); null for any other error. */
export function errnoOf(error: unknown): string | null {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null;
}

export const errnoReasons: Readonly<Record<string, string>> = {
  ENOSPC: "no space left on the device",
  EDQUOT: "disk quota exceeded",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EROFS: "read-only file system",
  ENOTDIR: "a file is in the place of a folder",
  EEXIST: "a file is in the place of a folder",
  EISDIR: "a folder is in the place of a file",
  EMFILE: "too many open files",
  ENAMETOOLONG: "a name that is too long",
  ELOOP: "symbolic links in a circle",
};

const fixes: Readonly<Record<string, string>> = {
  ENOSPC: "Free space on that disk and resume the run; everything written before is intact.",
  EDQUOT: "Free space under that quota and resume the run; everything written before is intact.",
  EACCES: "Give this user write access to the folder, or choose another run folder.",
  EPERM: "Give this user write access to the folder, or choose another run folder.",
  EROFS: "Choose a run folder on a writable file system.",
  ENOTDIR: "Move that file away, or choose another run folder.",
  EEXIST: "Move that file away, or choose another run folder.",
};

/**
 * Returns the `store` error for a failed file operation, with the path, the reason and a fix. A PeriodicEvalError is returned
 * unchanged.
 *
 * @param expected The expected content of `path`. Default: a path that can be read and written.
 * @param fix The fix of an error without a known one. Default: to check the folder and its disk.
 */
export function storeError(
  path: string,
  error: unknown,
  expected?: string,
  fix = "Check the folder and its disk, then resume the run.",
): PeriodicEvalError {
  if (PeriodicEvalError.is(error)) return error;
  const code = errnoOf(error);
  const isFolder = code === "EEXIST" || code === "ENOTDIR";
  return new PeriodicEvalError({
    code: "store",
    where: path,
    got: code === null ? errorMessage(error) : `${code} (${errnoReasons[code] ?? errorMessage(error)})`,
    expected:
      expected ??
      (isFolder
        ? "a folder, or a free name, at each part of the path"
        : "a path that can be read and written"),
    fix: fixes[code ?? ""] ?? fix,
    cause: error,
  });
}

/**
 * The folders whose locks this process holds, each with a check by lock that throws once the lock is lost. All copies of this module in
 * the process share them.
 */
const heldFolders = ((globalThis as { [key: symbol]: unknown })[Symbol.for("periodic-eval.folders")] ??=
  new Map<string, Map<string, () => void>>()) as Map<string, Map<string, () => void>>;

/** Makes `checkFolder` call `check` for everything in a folder, until the returned function is called. */
export function holdFolder(folder: string, lock: string, check: () => void): () => void {
  const checks = heldFolders.get(folder) ?? new Map<string, () => void>();
  heldFolders.set(folder, checks.set(lock, check));
  return () => {
    if (checks.get(lock) === check) checks.delete(lock);
    if (checks.size === 0) heldFolders.delete(folder);
  };
}

/**
 * Checks before a change of a file or folder that this process still holds the locks of the folders in which it is. `nodeFiles` does this
 * before each change; code that writes by other functions calls it. Between the check and the change, a process can still be stopped.
 *
 * @throws PeriodicEvalError `store` if another process has taken such a lock, or its folder is gone.
 */
export function checkFolder(path: string): void {
  if (heldFolders.size === 0) return;
  for (let folder = resolve(path), last = ""; folder !== last; last = folder, folder = dirname(folder))
    for (const check of heldFolders.get(folder)?.values() ?? []) check();
}
