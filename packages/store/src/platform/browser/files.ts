// The functions of `node:fs` and `node:fs/promises` that the packages use, on the files of `tree`. They throw Node's errors.
import { join, resolve } from "pathe";
import { bytesOf, fileError, tree, type Entry, type File } from "./file-tree.ts";

const statsOf = (entry: Entry) => ({
  size: entry.kind === "file" ? entry.size : 0,
  mtimeMs: entry.mtimeMs,
  isFile: () => entry.kind === "file",
  isDirectory: () => entry.kind === "folder",
});

type Stats = ReturnType<typeof statsOf>;

/** Opens a file or folder. */
export async function open(path: string, flags: "r" | "w" | "wx" | "a" = "r") {
  const isMaking = flags !== "r";
  const existing = isMaking ? tree.find(path) : tree.get(path, "open");
  if (existing !== null && flags === "wx") throw fileError("EEXIST", "open", path);
  if (existing?.kind === "folder" && isMaking) throw fileError("EISDIR", "open", path);
  const entry = existing ?? tree.makeFile(path);
  let isOpen = true;
  let position = flags === "a" && entry.kind === "file" ? entry.size : 0;
  const file = (): File => {
    if (!isOpen) throw fileError("EBADF", "read", path);
    if (entry.kind === "file") return entry;
    throw fileError("EISDIR", "read", path);
  };
  const handle = {
    stat: async () => statsOf(entry),
    async read(into: Uint8Array, offset: number, length: number, from: number) {
      const some = (await tree.read(file())).subarray(from, from + length);
      into.set(some, offset);
      return { bytesRead: some.length };
    },
    readFile: async (): Promise<Uint8Array> => (await tree.read(file())).slice(),
    async writeFile(content: string | ArrayBufferView): Promise<void> {
      const bytes = bytesOf(content);
      await tree.write(file(), bytes, position);
      position += bytes.length;
    },
    truncate: async (size = 0): Promise<void> => tree.truncate(file(), size),
    sync: () => tree.sync(),
    close: async (): Promise<void> => void (isOpen = false),
  };
  if (flags === "w" && existing !== null) await handle.truncate();
  return handle;
}

/** The part of Node's file handles that the packages use. */
export type FileHandle = Awaited<ReturnType<typeof open>>;

export const existsSync = (path: string): boolean => tree.find(path) !== null;

export function statSync(path: string, options?: { readonly throwIfNoEntry?: boolean }): Stats | undefined {
  const entry = options?.throwIfNoEntry === false ? tree.find(path) : tree.get(path, "stat");
  return entry === null ? undefined : statsOf(entry);
}

export const stat = async (path: string): Promise<Stats> => statsOf(tree.get(path, "stat"));

export function accessSync(path: string): void {
  tree.get(path, "access");
}

export const access = async (path: string): Promise<void> => accessSync(path);

export async function realpath(path: string): Promise<string> {
  tree.get(path, "realpath");
  return resolve(path);
}

export async function readFile(path: string): Promise<Uint8Array>;
export async function readFile(path: string, encoding: "utf8"): Promise<string>;
export async function readFile(path: string, encoding?: "utf8"): Promise<Uint8Array | string> {
  const entry = tree.get(path, "open");
  if (entry.kind === "folder") throw fileError("EISDIR", "read", path);
  const bytes = await tree.read(entry);
  // As Node decodes: with a byte-order mark, and without an error for invalid bytes.
  return encoding === undefined ? bytes.slice() : new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

/** Throws ENOENT: the packages read only Linux's files about processes synchronously. */
export function readFileSync(path: string): never {
  throw fileError("ENOENT", "open", path);
}

/** Throws ENOENT: the packages read only Linux's links about processes. */
export function readlinkSync(path: string): never {
  throw fileError("ENOENT", "readlink", path);
}

const pieceBytes = 2 ** 20;

export async function* createReadStream(path: string): AsyncGenerator<Uint8Array, void> {
  const bytes = await readFile(path);
  for (let from = 0; from < bytes.length; from += pieceBytes) yield bytes.subarray(from, from + pieceBytes);
}

export async function writeFile(path: string, content: string | ArrayBufferView): Promise<void> {
  const handle = await open(path, "w");
  try {
    await handle.writeFile(bytesOf(content));
  } finally {
    await handle.close();
  }
}

export function writeFileSync(path: string, _content: ArrayBufferView): never {
  throw fileError("ENOSYS", "open", path);
}

export function readdirSync(folder: string): string[] {
  return tree.namesIn(folder, "scandir");
}

const directoryEntry = (name: string, parentPath: string, { kind }: Entry) => ({
  name,
  parentPath,
  isFile: () => kind === "file",
  isDirectory: () => kind === "folder",
});

export type DirectoryEntry = ReturnType<typeof directoryEntry>;

export async function readdir(folder: string): Promise<string[]>;
export async function readdir(
  folder: string,
  options: { readonly withFileTypes: true; readonly recursive?: boolean },
): Promise<DirectoryEntry[]>;
export async function readdir(
  folder: string,
  options?: { readonly withFileTypes: true; readonly recursive?: boolean },
): Promise<string[] | DirectoryEntry[]> {
  const names = readdirSync(folder);
  if (options === undefined) return names;
  const entries: DirectoryEntry[] = [];
  for (const name of names) {
    const entry = tree.get(join(folder, name), "scandir");
    entries.push(directoryEntry(name, folder, entry));
    if (options.recursive && entry.kind === "folder")
      entries.push(...(await readdir(join(folder, name), options)));
  }
  return entries;
}

export function mkdirSync(path: string, options?: { readonly recursive?: boolean }): void {
  if (options?.recursive !== true) return tree.makeFolder(path);
  const parts = resolve(path).split("/");
  for (let count = 2; count <= parts.length; count++) {
    const part = parts.slice(0, count).join("/");
    const entry = tree.find(part);
    if (entry?.kind === "file" && count < parts.length) throw fileError("ENOTDIR", "mkdir", path);
    if (entry?.kind !== "folder") tree.makeFolder(part);
  }
}

export const mkdir = async (path: string, options?: { readonly recursive?: boolean }): Promise<void> =>
  mkdirSync(path, options);

export function mkdtempSync(prefix: string): string {
  const path = `${prefix}${crypto.getRandomValues(new Uint32Array(1))[0]!.toString(36)}`;
  mkdirSync(path);
  return path;
}

export const mkdtemp = async (prefix: string): Promise<string> => mkdtempSync(prefix);

export const rename = async (from: string, to: string): Promise<void> => tree.rename(from, to);
export const link = async (from: string, to: string): Promise<void> => tree.link(from, to);

export async function symlink(_target: string, path: string): Promise<void> {
  throw fileError("ENOSYS", "symlink", path);
}

export async function truncate(path: string, size = 0): Promise<void> {
  const handle = await open(path);
  await handle.truncate(size).finally(() => handle.close());
}

export async function unlink(path: string): Promise<void> {
  if (tree.get(path, "unlink").kind === "folder") throw fileError("EISDIR", "unlink", path);
  tree.remove(path, "unlink");
}

export async function rmdir(path: string): Promise<void> {
  if (tree.namesIn(path, "rmdir").length > 0) throw fileError("ENOTEMPTY", "rmdir", path);
  tree.remove(path, "rmdir");
}

interface RemoveOptions {
  readonly recursive?: boolean;
  readonly force?: boolean;
}

/** Whether there is nothing at a path; throws if a file takes the place of one of its folders. */
function isAbsent(path: string): boolean {
  try {
    tree.get(path, "rm");
    return false;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return true;
    throw error;
  }
}

export function rmSync(path: string, { recursive = false, force = false }: RemoveOptions = {}): void {
  if (force && isAbsent(path)) return;
  if (tree.get(path, "rm").kind === "folder" && !recursive) throw fileError("EISDIR", "rm", path);
  tree.remove(path, "rm");
}

export const rm = async (path: string, options?: RemoveOptions): Promise<void> => rmSync(path, options);
