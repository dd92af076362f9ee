import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import type * as promises from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { namedStream } from "@periodic-eval/core/random";

type Files = typeof promises;

interface Node {
  readonly isFolder: boolean;
  /** The bytes of a file that survive a power cut: those of the last sync. */
  synced: Uint8Array;
  /** The entries of a folder, as programs see them. */
  readonly now: Map<string, Node>;
  /** The entries that survive a power cut. */
  readonly durable: Map<string, Node>;
}

/** A creation, removal or rename that a power cut can still undo. A rename is one change of two folders. */
type Change = readonly { readonly folder: Node; readonly name: string; readonly node: Node | null }[];

/** Which unsynced changes of names survive a cut, and how much of the unsynced bytes of a file. */
export interface Cut {
  readonly name: string;
  keepsChange(): boolean;
  keepsBytes(): "none" | "half" | "all";
}

/** Returns the ways in which the power can be cut: three extremes, and `count` seeded mixtures that reorder changes. */
export function cuts(count: number): readonly Cut[] {
  const random = namedStream("power cuts");
  const bytes = ["none", "half", "all"] as const;
  return [
    { name: "all is lost", keepsChange: () => false, keepsBytes: () => "none" },
    { name: "names survive, bytes are lost", keepsChange: () => true, keepsBytes: () => "none" },
    { name: "bytes survive, names are lost", keepsChange: () => false, keepsBytes: () => "all" },
    ...Array.from({ length: count }, (_, i): Cut => ({
      name: `mixture ${i}`,
      keepsChange: () => random() < 0.5,
      keepsBytes: () => bytes[Math.floor(3 * random())]!,
    })),
  ];
}

/**
 * A disk that loses what was not synced when its power is cut. Programs use the folder `root` of this machine through `files`; the
 * disk records which bytes and names they have made durable. The model is the strictest that POSIX allows, with one exception:
 * a rename is atomic, as in all journaling file systems. Changes of names that no sync of their folder followed are lost or kept
 * in any combination, the creation of a folder with all its content included.
 */
export function powerCutDisk(root: string) {
  const top = newNode(true);
  let pending: Change[] = [];

  const partsOf = (path: string) => relative(root, resolve(path)).split(sep);
  const isInside = (path: unknown): path is string =>
    typeof path === "string" && partsOf(path)[0] !== ".." && resolve(path) !== resolve(root);
  const find = (path: string): Node | undefined =>
    resolve(path) === resolve(root)
      ? top
      : partsOf(path).reduce<Node | undefined>((node, name) => node?.now.get(name), top);
  const place = (path: string) => ({
    folder: find(dirname(resolve(path)))!,
    name: partsOf(path).at(-1)!,
  });

  function change(...parts: { readonly path: string; readonly node: Node | null }[]): void {
    const made = parts.map(({ path, node }) => ({ ...place(path), node }));
    for (const { folder, name, node } of made) setEntry(folder.now, name, node);
    pending.push(made);
  }

  function create(path: string, isFolder: boolean): void {
    if (find(path) === undefined) change({ path, node: newNode(isFolder) });
  }

  /** Makes the names in a folder, or the bytes of a file, durable. */
  function sync(path: string): void {
    const node = find(path)!;
    if (!node.isFolder) node.synced = readFileSync(path);
    const touches = (one: Change) => one.some(({ folder }) => folder === node);
    for (const one of pending.filter(touches))
      for (const { folder, name, node: entry } of one) setEntry(folder.durable, name, entry);
    pending = pending.filter((one) => !touches(one));
  }

  /** Writes what a cut leaves of the disk to a folder. */
  function cut({ keepsChange, keepsBytes }: Cut, to: string): void {
    const left = new Map<Node, Map<string, Node>>();
    const entriesOf = (folder: Node) => {
      if (!left.has(folder)) left.set(folder, new Map(folder.durable));
      return left.get(folder)!;
    };
    for (const one of pending)
      if (keepsChange()) for (const { folder, name, node } of one) setEntry(entriesOf(folder), name, node);
    const write = (node: Node, path: string): void => {
      if (!node.isFolder) return writeFileSync(path, bytesOf(node));
      mkdirSync(path, { recursive: true });
      for (const [name, entry] of entriesOf(node)) write(entry, join(path, name));
    };
    const bytesOf = (node: Node): Uint8Array => {
      const path = pathOf(top, node, root);
      const kept = keepsBytes();
      if (path === null || kept === "none") return node.synced;
      const bytes = readFileSync(path);
      // A file has its unsynced length before its bytes, or fewer bytes.
      return kept === "all" ? bytes : bytes.subarray(0, Math.max(node.synced.length, bytes.length >> 1));
    };
    write(top, to);
  }

  /** Makes everything durable that the programs have written. */
  function settle(node: Node = top, path: string = root): void {
    pending = [];
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const child = node.now.get(entry.name) ?? newNode(entry.isDirectory());
      node.now.set(entry.name, child);
      if (child.isFolder) settle(child, join(path, entry.name));
      else child.synced = readFileSync(join(path, entry.name));
    }
    node.durable.clear();
    for (const [name, child] of node.now) node.durable.set(name, child);
  }
  settle();

  return { root, isInside, find, change, create, sync, cut, settle };
}

export type PowerCutDisk = ReturnType<typeof powerCutDisk>;

const newNode = (isFolder: boolean): Node => ({
  isFolder,
  synced: new Uint8Array(),
  now: new Map(),
  durable: new Map(),
});

function setEntry(entries: Map<string, Node>, name: string, node: Node | null): void {
  if (node === null) entries.delete(name);
  else entries.set(name, node);
}

function pathOf(folder: Node, wanted: Node, path: string): string | null {
  for (const [name, node] of folder.now) {
    const found = node === wanted ? join(path, name) : pathOf(node, wanted, join(path, name));
    if (found !== null) return found;
  }
  return null;
}

/** The disk that `recordedFiles` records on, and what it does after each change. */
export interface Recorder {
  disk: PowerCutDisk | null;
  afterChange: () => Promise<void>;
}

/** Wraps `node:fs/promises`: records every change below the recorder's disk. Syncs are recorded, not executed. */
export function recordedFiles(real: Files, recorder: Recorder): Files {
  /** Runs an operation, records it if its path is on the disk, and then calls `afterChange`. */
  const recorded = async <T>(
    path: unknown,
    operation: () => Promise<T>,
    record: (disk: PowerCutDisk) => void,
  ) => {
    const { disk } = recorder;
    const result = await operation();
    if (disk === null || !(disk.isInside(path) || path === disk.root)) return result;
    record(disk);
    await recorder.afterChange();
    return result;
  };
  const remove = (path: string, operation: () => Promise<void>) =>
    recorded(path, operation, (disk) => disk.change({ path, node: null }));
  const files = {
    ...real,
    mkdir: (path: string, options?: { readonly recursive?: boolean }) =>
      recorded(
        path,
        () => real.mkdir(path, options),
        (disk) => disk.create(path, true),
      ),
    writeFile: (path: string, content: string) =>
      recorded(
        path,
        () => real.writeFile(path, content),
        (disk) => disk.create(path, false),
      ),
    copyFile: (from: string, to: string) =>
      recorded(
        to,
        () => real.copyFile(from, to),
        (disk) => disk.create(to, false),
      ),
    rename: (from: string, to: string) =>
      recorded(
        to,
        () => real.rename(from, to),
        (disk) => disk.change({ path: from, node: null }, { path: to, node: disk.find(from)! }),
      ),
    link: (from: string, to: string) =>
      recorded(
        to,
        () => real.link(from, to),
        (disk) => disk.change({ path: to, node: disk.find(from)! }),
      ),
    unlink: (path: string) => remove(path, () => real.unlink(path)),
    rmdir: (path: string) => remove(path, () => real.rmdir(path)),
    truncate: (path: string, bytes: number) =>
      recorded(
        path,
        () => real.truncate(path, bytes),
        () => undefined,
      ),
    // Removes file by file, because a cut can come in between.
    async rm(path: string, options?: { readonly recursive?: boolean; readonly force?: boolean }) {
      if (!recorder.disk?.isInside(path)) return await real.rm(path, options);
      const node = recorder.disk.find(path);
      if (node === undefined && options?.force) return;
      for (const name of Array.from(node?.now.keys() ?? [])) await files.rm(join(path, name), options);
      return await (node?.isFolder ? files.rmdir(path) : files.unlink(path));
    },
    async open(path: string, flags: string) {
      const handle = await recorded(
        path,
        () => real.open(path, flags),
        (disk) => disk.create(path, false),
      );
      if (!recorder.disk?.isInside(path) && path !== recorder.disk?.root) return handle;
      // A handle follows its file when that is renamed; no writer here renames an open file.
      return new Proxy(handle, {
        get(target, key) {
          const value = Reflect.get(target, key) as unknown;
          if (key === "sync")
            return () =>
              recorded(
                path,
                async () => undefined,
                (disk) => disk.sync(path),
              );
          if (typeof value !== "function") return value;
          const method = value.bind(target) as (...args: unknown[]) => Promise<unknown>;
          if (typeof key !== "string" || !/^(write|append|truncate)/.test(key)) return method;
          return (...args: unknown[]) =>
            recorded(
              path,
              () => method(...args),
              () => undefined,
            );
        },
      });
    },
  };
  return files as unknown as Files;
}
