import { basename, dirname, resolve } from "pathe";

const reasons = {
  EBADF: "bad file descriptor",
  EEXIST: "file already exists",
  EINVAL: "invalid argument",
  EIO: "the browser's storage failed",
  EISDIR: "illegal operation on a directory",
  ENOENT: "no such file or directory",
  ENOSPC: "no space left on device",
  ENOSYS: "function not implemented",
  ENOTDIR: "not a directory",
  ENOTEMPTY: "directory not empty",
} as const;

/** Returns an error as Node's file operations throw it: `ENOENT: no such file or directory, open '/run/a.json'`. */
export const fileError = (
  code: keyof typeof reasons,
  syscall: string,
  path: string,
  cause?: unknown,
): Error =>
  Object.assign(new Error(`${code}: ${reasons[code]}, ${syscall} '${path}'`, { cause }), {
    code,
    syscall,
    path,
  });

/** Returns the bytes of a view, or of a string as UTF-8. */
export const bytesOf = (content: string | ArrayBufferView): Uint8Array =>
  typeof content === "string"
    ? new TextEncoder().encode(content)
    : new Uint8Array(content.buffer, content.byteOffset, content.byteLength);

/** The only one of Node's constants that programs for browsers read. */
export const constants = { R_OK: 4 } as const;

export interface File {
  readonly kind: "file";
  readonly id: number;
  /** The content, in a buffer that can be longer than `size`; null if only the storage holds it. */
  buffer: Uint8Array | null;
  size: number;
  mtimeMs: number;
}

export interface Folder {
  readonly kind: "folder";
  readonly id: number;
  mtimeMs: number;
}

export type Entry = File | Folder;

/** A path and its file or folder. Two paths of one file have the same id. */
export type NamedEntry = (Omit<File, "buffer"> | Folder) & { readonly path: string };

/** Holds the contents of files by number, and the names of all files and folders. */
export interface Storage {
  load(): Promise<readonly NamedEntry[]>;
  /** Returns the content of a file. */
  read(id: number): Promise<Uint8Array>;
  /** Replaces the names, and writes and removes contents, durably: all or none. Reads them before it returns its promise. */
  write(changes: {
    readonly names: readonly NamedEntry[];
    readonly contents: readonly (readonly [id: number, bytes: Uint8Array])[];
    readonly removed: readonly number[];
  }): Promise<void>;
}

/** Larger contents that the storage holds are read again when they are needed. */
const keptBytes = 2 ** 16;
const flushMilliseconds = 50;

/**
 * Folders and files in memory, and their copy in a storage if there is one. Changes reach the storage all together, in one
 * transaction: after a crash it holds the files as they were at one moment, and no moment before the last `sync`.
 */
export class FileTree {
  /** By absolute path. The folder of each path is in it too. */
  #entries = new Map<string, Entry>([["/", newFolder(0)]]);
  #nextId = 1;
  #storage: Storage | null = null;
  #isChanged = false;
  /** Files whose content the storage lacks. */
  readonly #rewritten = new Set<File>();
  /** The files whose content the storage holds. */
  #stored: ReadonlySet<number> = new Set();
  #flushing: Promise<void> = Promise.resolve();
  #next: Promise<void> | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  get isEmpty(): boolean {
    return this.#entries.size === 1;
  }

  /** Replaces all files by those of a storage, which keeps later changes. Null: an empty tree in memory. */
  async use(storage: Storage | null): Promise<void> {
    await this.sync();
    const names = storage === null ? [] : await storage.load();
    this.#storage = storage;
    const byId = new Map<number, Entry>();
    this.#entries = new Map([["/", newFolder(0)]]);
    for (const { path, ...entry } of names) {
      const known = byId.get(entry.id) ?? (entry.kind === "file" ? { ...entry, buffer: null } : entry);
      byId.set(entry.id, known);
      this.#entries.set(path, known);
    }
    this.#stored = new Set(byId.keys());
    this.#nextId = 1 + Math.max(0, ...byId.keys());
  }

  find(path: string): Entry | null {
    return this.#entries.get(resolve(path)) ?? null;
  }

  get(path: string, syscall: string): Entry {
    const entry = this.find(path);
    if (entry !== null) return entry;
    this.#parent(path, syscall);
    throw fileError("ENOENT", syscall, path);
  }

  /** Returns the names in a folder. */
  namesIn(path: string, syscall: string): string[] {
    if (this.get(path, syscall).kind === "file") throw fileError("ENOTDIR", syscall, path);
    const folder = resolve(path);
    const names = [...this.#entries.keys()].filter((name) => name !== "/" && dirname(name) === folder);
    return names.map((name) => basename(name)).sort();
  }

  makeFolder(path: string): void {
    if (this.find(path) !== null) throw fileError("EEXIST", "mkdir", path);
    this.#add(path, newFolder(this.#nextId++), "mkdir");
  }

  makeFile(path: string): File {
    const file: File = {
      kind: "file",
      id: this.#nextId++,
      buffer: new Uint8Array(),
      size: 0,
      mtimeMs: now(),
    };
    this.#add(path, file, "open");
    this.#rewritten.add(file);
    return file;
  }

  /** Gives a file a second name. */
  link(from: string, to: string): void {
    const entry = this.get(from, "link");
    if (this.find(to) !== null) throw fileError("EEXIST", "link", to);
    this.#parent(to, "link");
    if (entry.kind === "folder") throw fileError("EISDIR", "link", from);
    this.#add(to, entry, "link");
  }

  rename(from: string, to: string): void {
    for (const path of [from, to]) this.#parent(path, "rename");
    const entry = this.get(from, "rename");
    const old = this.find(to);
    if (old === entry) return;
    const [source, target] = [resolve(from), resolve(to)];
    if (`${target}/`.startsWith(`${source}/`)) throw fileError("EINVAL", "rename", to);
    if (`${source}/`.startsWith(`${target}/`)) throw fileError("ENOTEMPTY", "rename", to);
    if (old?.kind === "folder" && entry.kind === "file") throw fileError("EISDIR", "rename", to);
    if (old?.kind === "file" && entry.kind === "folder") throw fileError("ENOTDIR", "rename", to);
    if (old?.kind === "folder" && this.namesIn(to, "rename").length > 0)
      throw fileError("ENOTEMPTY", "rename", to);
    for (const path of this.#within(source)) {
      this.#entries.set(`${target}${path.slice(source.length)}`, this.#entries.get(path)!);
      this.#entries.delete(path);
    }
    for (const path of [from, to]) this.#touch(this.#parent(path, "rename"));
  }

  /** Removes a file, or a folder with all that it holds. */
  remove(path: string, syscall: string): void {
    this.get(path, syscall);
    this.#touch(this.#parent(path, syscall));
    for (const name of this.#within(resolve(path))) this.#entries.delete(name);
  }

  /** Returns the bytes of a file. Valid until the file changes. */
  async read(file: File): Promise<Uint8Array> {
    file.buffer ??= (await this.#storage?.read(file.id)) ?? null;
    if (file.buffer === null) throw fileError("EIO", "read", String(file.id));
    return file.buffer.subarray(0, file.size);
  }

  /** Writes bytes at a position, which is at most the size of the file. */
  async write(file: File, bytes: Uint8Array, position: number): Promise<void> {
    const before = await this.read(file);
    const size = Math.max(file.size, position + bytes.length);
    let buffer = file.buffer ?? before;
    if (size > buffer.length) {
      buffer = new Uint8Array(Math.max(size, 2 * before.length));
      buffer.set(before);
    }
    buffer.set(bytes, position);
    file.buffer = buffer;
    this.#resized(file, size);
  }

  async truncate(file: File, size: number): Promise<void> {
    file.buffer = size === 0 ? new Uint8Array() : (await this.read(file)).slice(0, size);
    this.#resized(file, Math.min(size, file.size));
  }

  /** Returns once the storage holds all changes so far durably. */
  sync(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return (this.#next ??= this.#flushing.then(() => {
      this.#next = null;
      const flush = this.#flush();
      this.#flushing = flush.catch(() => undefined);
      return flush;
    }));
  }

  async #flush(): Promise<void> {
    const [storage, changed] = [this.#storage, [...this.#rewritten]];
    const isChanged = this.#isChanged;
    this.#isChanged = false;
    this.#rewritten.clear();
    if (storage === null || !isChanged) return;
    const names = [...this.#entries].map(([path, entry]) => namedEntry(path, entry));
    const ids = new Set(names.map(({ id }) => id));
    const files = changed.filter(({ id }) => ids.has(id));
    try {
      await storage.write({
        names,
        contents: files.map((file) => [file.id, file.buffer!.subarray(0, file.size)] as const),
        removed: [...this.#stored].filter((id) => !ids.has(id)),
      });
      this.#stored = ids;
    } catch (error) {
      this.#isChanged = true;
      for (const file of files) this.#rewritten.add(file);
      const isFull = error instanceof DOMException && error.name === "QuotaExceededError";
      throw fileError(isFull ? "ENOSPC" : "EIO", "fsync", "/", error);
    }
    for (const file of files) if (file.size > keptBytes && !this.#rewritten.has(file)) file.buffer = null;
  }

  #resized(file: File, size: number): void {
    file.size = size;
    this.#touch(file);
    this.#rewritten.add(file);
  }

  #touch(entry: Entry): void {
    entry.mtimeMs = now();
    this.#isChanged = true;
    if (this.#storage === null || this.#timer !== undefined) return;
    // A failure keeps the changes, and the next `sync` reports it.
    this.#timer = setTimeout(() => void this.sync().catch(() => undefined), flushMilliseconds);
  }

  /** Returns the folder that has, or would have, a path in it. */
  #parent(path: string, syscall: string): Folder {
    let at = dirname(resolve(path));
    const parent = this.#entries.get(at);
    if (parent?.kind === "folder") return parent;
    while (!this.#entries.has(at)) at = dirname(at);
    throw fileError(this.#entries.get(at)!.kind === "file" ? "ENOTDIR" : "ENOENT", syscall, path);
  }

  #add(path: string, entry: Entry, syscall: string): void {
    this.#touch(this.#parent(path, syscall));
    this.#entries.set(resolve(path), entry);
    this.#touch(entry);
  }

  /** Returns an absolute path and all paths in it. */
  #within(path: string): readonly string[] {
    return [...this.#entries.keys()].filter((name) => name === path || name.startsWith(`${path}/`));
  }
}

const now = (): number => performance.timeOrigin + performance.now();

const newFolder = (id: number): Folder => ({ kind: "folder", id, mtimeMs: now() });

function namedEntry(path: string, entry: Entry): NamedEntry {
  const { kind, id, mtimeMs } = entry;
  return kind === "file" ? { path, kind, id, size: entry.size, mtimeMs } : { path, kind, id, mtimeMs };
}

/** The files that the packages see in this page or worker. */
export const tree = new FileTree();
