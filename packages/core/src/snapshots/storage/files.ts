import { link, mkdir, open, readdir, readFile, rename, truncate, unlink } from "node:fs/promises";

/** A file open for writing. */
export interface OpenFile {
  /** Adds to the end; text as UTF-8. */
  write(content: string | Uint8Array): Promise<void>;
  /** Until it returns, the bytes may be lost with the machine (not with the process). */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** The few file operations that the store stands on; a test passes its own to fail or die at any of them. */
export interface FileSystem {
  /** Creates the folder and its parents; does nothing where it exists. */
  makeFolder(path: string): Promise<void>;
  list(folder: string): Promise<readonly { readonly name: string; readonly isFolder: boolean }[]>;
  /** UTF-8. */
  read(path: string): Promise<string>;
  /** `"create"` refuses a path that exists. */
  open(path: string, mode: "create" | "append"): Promise<OpenFile>;
  truncate(path: string, bytes: number): Promise<void>;
  /** Replaces `to` in one step. */
  rename(from: string, to: string): Promise<void>;
  /** A second name for one file; refuses a `to` that exists. */
  link(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Makes renames and creations in a folder durable, where the platform has it. */
  syncFolder(folder: string): Promise<void>;
}

/** What readers need of it. */
export type FileReader = Pick<FileSystem, "list" | "read">;

export const nodeFiles: FileSystem = {
  async makeFolder(path) {
    await mkdir(path, { recursive: true });
  },
  async list(folder) {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }));
  },
  read: (path) => readFile(path, "utf8"),
  async open(path, mode) {
    const handle = await open(path, mode === "create" ? "wx" : "a");
    return {
      write: (content) => handle.writeFile(content, "utf8"),
      sync: () => handle.sync(),
      close: () => handle.close(),
    };
  },
  truncate,
  rename,
  link,
  remove: unlink,
  syncFolder,
};

/** Makes renames and creations in a folder survive the machine, where the platform has it. */
export async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, "r");
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    // Windows cannot open a folder, and some file systems cannot sync one: a rename is then as durable as it gets.
    if (!["EISDIR", "EPERM", "EINVAL", "ENOTSUP", "EACCES"].includes(errnoOf(error) ?? "")) throw error;
  }
}

/** The system's code of a failed operation (`ENOENT`, …); null for any other error. */
export function errnoOf(error: unknown): string | null {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null;
}
