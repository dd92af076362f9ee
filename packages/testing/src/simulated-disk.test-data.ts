// Imports no module of the packages: `vi.mock` of node:fs loads it while those modules wait for their mocks.
import { basename, dirname, resolve } from "node:path";

/** A file or folder. */
export interface Entry {
  readonly id: number;
  readonly isFolder: boolean;
  /** The bytes of a file as programs see them, and those that survive a power cut: of the last sync. */
  bytes: Uint8Array;
  synced: Uint8Array;
  /** How many of the first bytes nothing has written or cut since the last sync. */
  stable: number;
  /** The entries of a folder as programs see them, and those that survive a power cut. */
  readonly now: Map<string, Entry>;
  readonly durable: Map<string, Entry>;
  /** 0 for what an earlier process wrote. */
  mtimeMs: number;
  /** Whether the planted fault "rename before data" holds back a sync. */
  isSyncedLate: boolean;
}

/** A creation, removal or rename that a power cut can still undo. A rename is one change of two folders. */
type Change = readonly { readonly folder: Entry; readonly name: string; readonly entry: Entry | null }[];

/** Mistakes of a program that the disk plants: the program behaves as if its source had them. */
export type Planted = "no sync" | "rename before data" | "no lock" | "row twice";

/** Returns a number from 0 to 1 for each call: mulberry32, seeded with a hash of the text. */
export function seededRandom(seed: string): () => number {
  let state = 0;
  for (const character of seed) state = (Math.imul(state, 31) + character.codePointAt(0)!) | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * A disk in memory that loses what was not synced when its power is cut. The model is the strictest that POSIX allows, with one
 * exception: a rename is atomic, as in all journaling file systems. Changes of names that no sync of their folder followed are lost or
 * survive in any combination, also before the data of the files that they name. Of bytes that no sync followed, none, a part or all
 * survive.
 */
export class SimulatedDisk {
  readonly root: string;
  readonly planted: Planted | null;
  #top = newEntry(true);
  #pending: Change[] = [];
  readonly #names = new Map<string, readonly string[]>();

  constructor(root: string, planted: Planted | null = null) {
    this.root = root;
    this.planted = planted;
  }

  find(path: string): Entry | null {
    let entry: Entry | undefined = this.#top;
    for (const name of this.#namesOf(path)) entry = entry?.now.get(name);
    return entry ?? null;
  }

  get(path: string, syscall: string): Entry {
    const entry = this.find(path);
    if (entry !== null) return entry;
    this.#parentOf(path, syscall);
    throw fileError("ENOENT", syscall, path);
  }

  folder(path: string, syscall: string): Entry {
    const entry = this.get(path, syscall);
    if (entry.isFolder) return entry;
    throw fileError("ENOTDIR", syscall, path);
  }

  create(path: string, isFolder: boolean): Entry {
    const syscall = isFolder ? "mkdir" : "open";
    if (this.find(path) !== null) throw fileError("EEXIST", syscall, path);
    const entry = newEntry(isFolder);
    this.#change(syscall, [path, entry]);
    return entry;
  }

  link(from: string, to: string): void {
    const entry = this.get(from, "link");
    if (this.find(to) !== null) throw fileError("EEXIST", "link", to);
    this.#change("link", [to, entry]);
  }

  rename(from: string, to: string): void {
    const [entry, old] = [this.get(from, "rename"), this.find(to)];
    if (old?.isFolder && (!entry.isFolder || old.now.size > 0))
      throw fileError(entry.isFolder ? "ENOTEMPTY" : "EISDIR", "rename", to);
    if (old !== null && !old.isFolder && entry.isFolder) throw fileError("ENOTDIR", "rename", to);
    this.#change("rename", [from, null], [to, entry]);
    if (entry.isSyncedLate) this.syncFolder(this.#parentOf(to, "rename"));
  }

  remove(path: string, syscall: string): void {
    const entry = this.get(path, syscall);
    if (syscall === "unlink" && entry.isFolder) throw fileError("EISDIR", syscall, path);
    if (syscall === "rmdir" && entry.now.size > 0) throw fileError("ENOTEMPTY", syscall, path);
    this.#change(syscall, [path, null]);
  }

  /** Writes bytes at a position, which is at most the length of the file. */
  write(entry: Entry, bytes: Uint8Array, position: number): void {
    const whole = new Uint8Array(Math.max(entry.bytes.length, position + bytes.length));
    whole.set(entry.bytes);
    whole.set(bytes, position);
    Object.assign(entry, { bytes: whole, stable: Math.min(entry.stable, position), mtimeMs: now() });
  }

  truncate(entry: Entry, size: number): void {
    const stable = Math.min(entry.stable, size);
    Object.assign(entry, { bytes: entry.bytes.slice(0, size), stable, mtimeMs: now() });
  }

  /** Makes the bytes of a file, or the names in a folder, durable. */
  sync(entry: Entry): void {
    if (entry.isFolder) {
      this.syncFolder(entry);
      for (const file of entry.now.values()) if (file.isSyncedLate) syncBytes(file);
    } else if (this.planted === "rename before data") entry.isSyncedLate = true;
    else if (this.planted !== "no sync") syncBytes(entry);
  }

  syncFolder(folder: Entry): void {
    const touches = (one: Change) => one.some((part) => part.folder === folder);
    for (const part of this.#pending.filter(touches).flat())
      setEntry(part.folder.durable, part.name, part.entry);
    this.#pending = this.#pending.filter((one) => !touches(one));
  }

  /** Ends a process: all that was written is older than the next one. */
  endProcess(): void {
    for (const entry of this.#entries()) entry.mtimeMs = 0;
  }

  /** Cuts the power: loses what was not durable, in a way that `random` chooses. */
  cut(random: () => number): void {
    // Three extremes (nothing, only names, only bytes survive) and mixtures.
    const way = Math.floor(6 * random());
    const keepsChange = () => (way < 3 ? way === 1 : random() < (way === 3 ? 0.9 : 0.5));
    const left = (entry: Entry) =>
      way === 2 ? entry.bytes : way < 2 ? entry.synced : bytesLeft(entry, random);
    for (const one of this.#pending)
      if (keepsChange()) for (const { folder, name, entry } of one) setEntry(folder.durable, name, entry);
    this.#pending = [];
    const keep = (entry: Entry): void => {
      if (!entry.isFolder) entry.bytes = left(entry);
      entry.now.clear();
      for (const [name, child] of entry.durable) entry.now.set(name, child);
    };
    keep(this.#top);
    // The names that survive decide which entries there are.
    for (const entry of this.#entries()) keep(entry);
    for (const entry of this.#entries()) syncBytes(entry);
    this.endProcess();
  }

  /** Returns an independent copy, all of it durable. */
  copy(planted: Planted | null = this.planted): SimulatedDisk {
    const disk = new SimulatedDisk(this.root, planted);
    const copies = new Map<Entry, Entry>();
    const copyOf = (entry: Entry): Entry => {
      const known = copies.get(entry);
      if (known !== undefined) return known;
      const copy = { ...newEntry(entry.isFolder), bytes: entry.bytes, mtimeMs: 0 };
      syncBytes(copy);
      copies.set(entry, copy);
      for (const [name, child] of entry.now) {
        copy.now.set(name, copyOf(child));
        copy.durable.set(name, copyOf(child));
      }
      return copy;
    };
    disk.#top = copyOf(this.#top);
    return disk;
  }

  /** Visits each entry after its folder. */
  *#entries(folder: Entry = this.#top): Generator<Entry> {
    for (const entry of folder.now.values()) {
      yield entry;
      if (entry.isFolder) yield* this.#entries(entry);
    }
  }

  #namesOf(path: string): readonly string[] {
    let names = this.#names.get(path);
    if (names === undefined) {
      names = resolve(path)
        .slice(this.root.length)
        .split("/")
        .filter((name) => name !== "");
      this.#names.set(path, names);
    }
    return names;
  }

  #parentOf(path: string, syscall: string): Entry {
    const parent = this.find(dirname(resolve(path)));
    if (parent === null) {
      this.#parentOf(dirname(resolve(path)), syscall);
      throw fileError("ENOENT", syscall, path);
    }
    if (!parent.isFolder) throw fileError("ENOTDIR", syscall, path);
    return parent;
  }

  #change(syscall: string, ...parts: readonly (readonly [path: string, entry: Entry | null])[]): void {
    const made = parts.map(([path, entry]) => ({
      folder: this.#parentOf(path, syscall),
      name: basename(resolve(path)),
      entry,
    }));
    for (const { folder, name, entry } of made) {
      setEntry(folder.now, name, entry);
      folder.mtimeMs = now();
    }
    this.#pending.push(made);
  }
}

/** The part of a file's bytes that survives a cut: synced ones, and none, some or all of the others. */
function bytesLeft({ bytes, synced, stable }: Entry, random: () => number): Uint8Array {
  const share = Math.floor(3 * random());
  if (share === 0) return synced;
  if (share === 1) return bytes;
  return bytes.slice(0, stable + Math.floor(random() * (bytes.length - stable)));
}

function syncBytes(entry: Entry): void {
  entry.synced = entry.bytes;
  entry.stable = entry.bytes.length;
  entry.isSyncedLate = false;
}

let entries = 0;

const newEntry = (isFolder: boolean): Entry => ({
  id: ++entries,
  isFolder,
  bytes: new Uint8Array(),
  synced: new Uint8Array(),
  stable: 0,
  now: new Map(),
  durable: new Map(),
  mtimeMs: now(),
  isSyncedLate: false,
});

const now = (): number => performance.timeOrigin + performance.now();

function setEntry(folder: Map<string, Entry>, name: string, entry: Entry | null): void {
  if (entry === null) folder.delete(name);
  else folder.set(name, entry);
}

/** Returns an error as Node's file operations throw it, without a stack, whose capture takes most of the time. */
export function fileError(code: string, syscall: string, path: string): Error {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const error = new Error(`${code}: simulated, ${syscall} '${path}'`);
  Error.stackTraceLimit = stackTraceLimit;
  return Object.assign(error, { code, syscall, path });
}
