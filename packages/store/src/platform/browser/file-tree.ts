import { fileError } from "./file-error.ts";
import { basename, dirname, resolve } from "./paths.ts";
import type { FileRecord, FolderRecord, Storage } from "./storage.ts";

export const constants = { R_OK: 4, O_RDONLY: 0, O_RDWR: 2, O_CREAT: 64 } as const;

export interface File {
  readonly kind: "file";
  readonly id: number;
  /** The content, in a buffer that can be longer than `size`; null if only the storage holds it. */
  buffer: Uint8Array | null;
  size: number;
  mtimeMs: number;
  /** Names and open handles. */
  uses: number;
}

export interface Folder {
  readonly kind: "folder";
  readonly id: number;
  readonly children: Map<string, Entry>;
  mtimeMs: number;
}

export type Entry = File | Folder;

/** Larger contents that the storage holds are read again when they are needed. */
const keptBytes = 2 ** 16;
const flushMilliseconds = 50;
const rootId = 0;

/**
 * Folders and files in memory, and their copy in a storage if there is one. Changes reach the storage all together, in one
 * transaction: after a crash it holds the files as they were at one moment, and no moment before the last `sync`.
 */
export class FileTree {
  #root = newFolder(rootId);
  #nextId = rootId + 1;
  #storage: Storage | null = null;
  readonly #changed = new Set<Entry>();
  readonly #rewritten = new Set<File>();
  readonly #removed = new Set<number>();
  #flushing: Promise<void> = Promise.resolve();
  #next: Promise<void> | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  get isEmpty(): boolean {
    return this.#root.children.size === 0;
  }

  /** Replaces all files by those of a storage, which keeps later changes. Null: an empty tree in memory. */
  async use(storage: Storage | null): Promise<void> {
    await this.sync();
    const records = storage === null ? [] : await storage.load();
    this.#storage = storage;
    this.#root = newFolder(rootId);
    this.#nextId = 1 + Math.max(rootId, ...records.map(({ id }) => id));
    const entries = new Map<number, Entry>([[rootId, this.#root]]);
    for (const record of records) if (record.id !== rootId) entries.set(record.id, entryOf(record));
    for (const record of records) {
      if (record.kind !== "folder") continue;
      const { children } = entries.get(record.id) as Folder;
      for (const [name, id] of record.children) {
        const entry = entries.get(id)!;
        children.set(name, entry);
        if (entry.kind === "file") entry.uses += 1;
      }
    }
    // A file that was removed while it was open, when the page closed.
    for (const entry of entries.values())
      if (entry.kind === "file" && entry.uses === 0) this.#removed.add(entry.id);
  }

  find(path: string): Entry | null {
    let entry: Entry = this.#root;
    for (const name of resolve(path).split("/")) {
      if (name === "") continue;
      const next: Entry | undefined = entry.kind === "folder" ? entry.children.get(name) : undefined;
      if (next === undefined) return null;
      entry = next;
    }
    return entry;
  }

  get(path: string, syscall: string): Entry {
    const entry = this.find(path);
    if (entry !== null) return entry;
    this.#parent(path, syscall);
    throw fileError("ENOENT", syscall, path);
  }

  folder(path: string, syscall: string): Folder {
    const entry = this.get(path, syscall);
    if (entry.kind === "folder") return entry;
    throw fileError("ENOTDIR", syscall, path);
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
      uses: 0,
    };
    this.#add(path, file, "open");
    this.#touch(file);
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
    const [source, target] = [`${resolve(from)}/`, `${resolve(to)}/`];
    if (target.startsWith(source)) throw fileError("EINVAL", "rename", to);
    if (source.startsWith(target)) throw fileError("ENOTEMPTY", "rename", to);
    if (old?.kind === "folder" && entry.kind === "file") throw fileError("EISDIR", "rename", to);
    if (old?.kind === "file" && entry.kind === "folder") throw fileError("ENOTDIR", "rename", to);
    if (old?.kind === "folder" && old.children.size > 0) throw fileError("ENOTEMPTY", "rename", to);
    this.#add(to, entry, "rename");
    if (old !== null) this.#release(old);
    this.#takeName(from, "rename");
    if (entry.kind === "file") entry.uses -= 1;
  }

  /** Removes a file, or a folder with all that it holds. */
  remove(path: string, syscall: string): void {
    this.#release(this.#takeName(path, syscall));
  }

  /** Counts an open handle, so that a removed file stays readable until the handle is closed. */
  hold(file: File): () => void {
    file.uses += 1;
    return () => this.#release(file);
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
    const storage = this.#storage;
    const [changed, rewritten, removed] = [[...this.#changed], [...this.#rewritten], [...this.#removed]];
    for (const set of [this.#changed, this.#rewritten, this.#removed]) set.clear();
    if (storage === null || changed.length + rewritten.length + removed.length === 0) return;
    try {
      await storage.write({
        records: changed.map(recordOf),
        contents: rewritten.map((file) => [file.id, file.buffer!.subarray(0, file.size)] as const),
        removed,
      });
    } catch (error) {
      for (const entry of changed) this.#changed.add(entry);
      for (const file of rewritten) this.#rewritten.add(file);
      for (const id of removed) this.#removed.add(id);
      const isFull = error instanceof DOMException && error.name === "QuotaExceededError";
      throw fileError(isFull ? "ENOSPC" : "EIO", "fsync", "/", error);
    }
    for (const file of rewritten) if (file.size > keptBytes && !this.#rewritten.has(file)) file.buffer = null;
  }

  #resized(file: File, size: number): void {
    file.size = size;
    this.#touch(file);
    this.#rewritten.add(file);
  }

  #touch(entry: Entry): void {
    entry.mtimeMs = now();
    this.#changed.add(entry);
    if (this.#storage === null || this.#timer !== undefined) return;
    // A failure keeps the changes, and the next `sync` reports it.
    this.#timer = setTimeout(() => void this.sync().catch(() => undefined), flushMilliseconds);
  }

  #parent(path: string, syscall: string): Folder {
    for (let at = dirname(resolve(path)); ; at = dirname(at)) {
      const entry = this.find(at);
      if (entry?.kind === "file") throw fileError("ENOTDIR", syscall, path);
      if (entry !== null && at === dirname(resolve(path))) return entry;
      if (entry !== null) throw fileError("ENOENT", syscall, path);
    }
  }

  #add(path: string, entry: Entry, syscall: string): void {
    const parent = this.#parent(path, syscall);
    parent.children.set(basename(resolve(path)), entry);
    if (entry.kind === "file") entry.uses += 1;
    this.#touch(parent);
    this.#touch(entry);
  }

  #takeName(path: string, syscall: string): Entry {
    const entry = this.get(path, syscall);
    const parent = this.#parent(path, syscall);
    parent.children.delete(basename(resolve(path)));
    this.#touch(parent);
    return entry;
  }

  /** Forgets a file that has lost a name or a handle, if it has no other; a folder with all that it holds. */
  #release(entry: Entry): void {
    if (entry.kind === "folder") for (const child of entry.children.values()) this.#release(child);
    else if (--entry.uses > 0) return;
    this.#changed.delete(entry);
    if (entry.kind === "file") this.#rewritten.delete(entry);
    this.#removed.add(entry.id);
  }
}

const now = (): number => performance.timeOrigin + performance.now();

const newFolder = (id: number): Folder => ({ kind: "folder", id, children: new Map(), mtimeMs: now() });

function entryOf(record: FileRecord | FolderRecord): Entry {
  const { id, kind, mtimeMs } = record;
  return kind === "folder"
    ? { kind, id, children: new Map(), mtimeMs }
    : { kind, id, buffer: null, size: record.size, mtimeMs, uses: 0 };
}

function recordOf(entry: Entry): FileRecord | FolderRecord {
  const { kind, id, mtimeMs } = entry;
  if (kind === "file") return { kind, id, size: entry.size, mtimeMs };
  return { kind, id, children: [...entry.children].map(([name, child]) => [name, child.id]), mtimeMs };
}

/** The files that the packages see in this page or worker. */
export const tree = new FileTree();
