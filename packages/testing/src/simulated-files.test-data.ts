import type * as sync from "node:fs";
import type * as promises from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type * as timers from "node:timers/promises";
import { fileError, type Entry, type SimulatedDisk } from "./simulated-disk.test-data.ts";
import { currentProcess, type SimulatedProcess } from "./simulated-process.test-data.ts";

/** Paths below it are on the disk of the process that calls. */
export const simulatedRoot = "/simulated";

/** The disk that the test itself sees, outside of processes. */
export const seen: { disk: SimulatedDisk | null } = { disk: null };

const isSimulated = (path: unknown): path is string =>
  typeof path === "string" && (path === simulatedRoot || path.startsWith(`${simulatedRoot}/`));

type Options = { readonly recursive?: boolean; readonly withFileTypes?: boolean; readonly force?: boolean };

/** The disk and process of a call, and its path: with the planted fault "no lock", each process has locks of its own. */
function callOf(path: string): { disk: SimulatedDisk; process: SimulatedProcess | null; at: string } {
  const process = currentProcess();
  const disk = process?.disk ?? seen.disk!;
  const isOpenLock = disk.planted === "no lock" && /\.lock(\.[0-9a-f]{16})?$/.test(path);
  return { disk, process, at: isOpenLock ? `${path}.${process?.name}` : path };
}

/** The operations on paths. Each is one operation of the disk. */
const operations = {
  stat(path: string) {
    const { disk, process, at } = callOf(path);
    process?.begin("stat", path);
    return statsOf(disk.get(at, "stat"));
  },
  access(path: string): void {
    const { disk, process, at } = callOf(path);
    process?.begin("access", path);
    disk.get(at, "access");
  },
  realpath(path: string): string {
    operations.access(path);
    return resolve(path);
  },
  readFile(path: string, encoding?: string | { readonly encoding?: string }): Buffer | string {
    const { disk, process, at } = callOf(path);
    process?.begin("read", path);
    const entry = disk.get(at, "open");
    if (entry.isFolder) throw fileError("EISDIR", "read", path);
    const bytes = Buffer.from(entry.bytes);
    return encoding === undefined ? bytes : bytes.toString("utf8");
  },
  readdir(path: string, { withFileTypes = false, recursive = false }: Options = {}): unknown[] {
    const { disk, process } = callOf(path);
    process?.begin("scandir", path);
    const found: unknown[] = [];
    const visit = (folder: Entry, parentPath: string) => {
      for (const [name, entry] of [...folder.now].sort(([a], [b]) => (a < b ? -1 : 1))) {
        const type = {
          isFile: () => !entry.isFolder,
          isDirectory: () => entry.isFolder,
          isSymbolicLink: () => false,
        };
        found.push(
          withFileTypes ? { name, parentPath, ...type } : join(parentPath, name).slice(path.length + 1),
        );
        if (recursive && entry.isFolder) visit(entry, join(parentPath, name));
      }
    };
    visit(disk.folder(path, "scandir"), path);
    return found;
  },
  mkdir(path: string, { recursive = false }: Options = {}): void {
    const { disk, process } = callOf(path);
    process?.begin("mkdir", path);
    if (recursive && disk.find(path)?.isFolder) return;
    if (recursive && disk.find(dirname(path)) === null) operations.mkdir(dirname(path), { recursive });
    disk.create(path, true);
  },
  rename(from: string, to: string): void {
    const { disk, process, at } = callOf(to);
    process?.begin("rename", to);
    disk.rename(callOf(from).at, at);
  },
  link(from: string, to: string): void {
    const { disk, process, at } = callOf(to);
    process?.begin("link", to);
    disk.link(callOf(from).at, at);
  },
  unlink(path: string): void {
    const { disk, process, at } = callOf(path);
    process?.begin("unlink", path);
    disk.remove(at, "unlink");
  },
  rmdir(path: string): void {
    const { disk, process } = callOf(path);
    process?.begin("rmdir", path);
    disk.remove(path, "rmdir");
  },
  /** Removes file by file, because a cut can come in between. */
  rm(path: string, { recursive = false, force = false }: Options = {}): void {
    const { disk, at } = callOf(path);
    const entry = disk.find(at);
    if (entry === null && force) return;
    if (entry?.isFolder !== true) return operations.unlink(path);
    if (!recursive) throw fileError("EISDIR", "rm", path);
    for (const name of Array.from(entry.now.keys())) operations.rm(join(path, name), { recursive, force });
    operations.rmdir(path);
  },
  truncate(path: string, size = 0): void {
    const { disk, process, at } = callOf(path);
    process?.begin("truncate", path);
    disk.truncate(disk.get(at, "open"), size);
  },
  writeFile(path: string, content: string | Uint8Array): void {
    const file = openFile(path, "w");
    file.write(bytesOf(content));
  },
  appendFile(path: string, content: string | Uint8Array): void {
    openFile(path, "a").write(bytesOf(content));
  },
  copyFile(from: string, to: string): void {
    operations.writeFile(to, operations.readFile(from));
  },
};

/** Opens a file as `fs.open` does. The file follows its entry, whatever name that has. */
function openFile(path: string, flags: string | number = "r") {
  const { disk, process, at } = callOf(path);
  const isMaking = typeof flags === "string" && !flags.startsWith("r");
  process?.begin(isMaking ? "open" : "access", path);
  const existing = disk.find(at);
  if (existing !== null && String(flags).includes("x")) throw fileError("EEXIST", "open", path);
  if (existing?.isFolder && isMaking) throw fileError("EISDIR", "open", path);
  const entry = existing ?? (isMaking ? disk.create(at, false) : disk.get(at, "open"));
  if (isMaking && flags.startsWith("w")) disk.truncate(entry, 0);
  const isAppending = isMaking && flags.startsWith("a");
  let position = 0;
  return {
    entry,
    stat: () => statsOf(entry),
    write(bytes: Uint8Array, to: number | null = null): number {
      const start = isAppending ? entry.bytes.length : (to ?? position);
      const half = (share: number) =>
        disk.write(entry, bytes.subarray(0, Math.floor(share * bytes.length)), start);
      process?.begin("write", path, half);
      disk.write(entry, bytes, start);
      if (isAppending && disk.planted === "row twice") disk.write(entry, bytes, entry.bytes.length);
      if (to === null) position = start + bytes.length;
      return bytes.length;
    },
    read(into: Uint8Array, offset = 0, length = into.length, from = position): number {
      process?.begin("read", path);
      const some = entry.bytes.subarray(from, from + length);
      into.set(some, offset);
      return some.length;
    },
    readAll(): Buffer {
      process?.begin("read", path);
      return Buffer.from(entry.bytes);
    },
    truncate(size = 0): void {
      process?.begin("truncate", path);
      disk.truncate(entry, size);
    },
    sync(): void {
      process?.begin("fsync", path);
      disk.sync(entry);
    },
  };
}

type OpenFile = ReturnType<typeof openFile>;

const bytesOf = (content: string | Uint8Array): Uint8Array =>
  typeof content === "string" ? new TextEncoder().encode(content) : Uint8Array.from(content);

const statsOf = ({ id, isFolder, bytes, mtimeMs }: Entry) => ({
  size: bytes.length,
  mtimeMs,
  dev: 1,
  ino: id,
  isFile: () => !isFolder,
  isDirectory: () => isFolder,
  isSymbolicLink: () => false,
});

/** Returns a file handle of `node:fs/promises`. */
function handleOf(file: OpenFile) {
  const inTurn = async <T>(work: () => T): Promise<T> => {
    await currentProcess()?.turn();
    return work();
  };
  return {
    stat: () => inTurn(file.stat),
    sync: () => inTurn(file.sync),
    datasync: () => inTurn(file.sync),
    truncate: (size?: number) => inTurn(() => file.truncate(size)),
    writeFile: (content: string | Uint8Array) => inTurn(() => void file.write(bytesOf(content))),
    appendFile: (content: string | Uint8Array) => inTurn(() => void file.write(bytesOf(content))),
    write: (content: string | Uint8Array, ...rest: readonly (number | null | undefined)[]) =>
      inTurn(() => {
        const [offset, length, position] = typeof content === "string" ? [0, undefined, rest[0]] : rest;
        const bytes = bytesOf(content).subarray(offset ?? 0);
        return { bytesWritten: file.write(bytes.subarray(0, length ?? bytes.length), position ?? null) };
      }),
    read: (into: Uint8Array, offset?: number, length?: number, position?: number) =>
      inTurn(() => ({ bytesRead: file.read(into, offset, length, position), buffer: into })),
    readFile: (encoding?: string) =>
      inTurn(() => (encoding === undefined ? file.readAll() : file.readAll().toString("utf8"))),
    async *createReadStream() {
      yield await inTurn(file.readAll);
    },
    close: async () => undefined,
  };
}

/** Returns `real` with the simulated disk below `simulatedRoot`. For `vi.mock("node:fs/promises")`. */
export function simulatedPromises(real: typeof promises): typeof promises {
  const changed: Record<string, unknown> = {
    open: async (path: string, flags?: string) => {
      if (!isSimulated(path)) return real.open(path, flags);
      await currentProcess()?.turn();
      return handleOf(openFile(path, flags));
    },
    lstat: routed(real.lstat, operations.stat),
    async mkdtemp(prefix: string) {
      if (!isSimulated(prefix)) return real.mkdtemp(prefix);
      const path = `${prefix}${Math.floor(1e9 * performance.now())}`;
      operations.mkdir(path);
      return path;
    },
  };
  for (const [name, operation] of Object.entries(operations))
    changed[name] = routed(real[name as keyof typeof real] as never, operation);
  return { ...real, ...changed, default: { ...real, ...changed } } as typeof promises;
}

/** Returns a function that calls `operation` for paths on the disk, at the turn of its process. */
function routed(
  real: (...given: never[]) => unknown,
  operation: (...given: never[]) => unknown,
): (...given: readonly unknown[]) => Promise<unknown> {
  return async (...given) => {
    if (!isSimulated(given[0])) return real(...(given as never[]));
    await currentProcess()?.turn();
    return operation(...(given as never[]));
  };
}

/** Returns `real` with the simulated disk below `simulatedRoot`. For `vi.mock("node:fs")`. */
export function simulatedSync(real: typeof sync): typeof sync {
  const files = new Map<number, OpenFile>();
  let count = 1 << 20;
  const changed: Record<string, unknown> = {
    existsSync: (path: string) =>
      isSimulated(path) ? callOf(path).disk.find(callOf(path).at) !== null : real.existsSync(path),
    statSync: (path: string, options?: { readonly throwIfNoEntry?: boolean }) => {
      if (!isSimulated(path)) return real.statSync(path, options);
      if (options?.throwIfNoEntry === false && callOf(path).disk.find(path) === null) return undefined;
      return operations.stat(path);
    },
    openSync(path: string, flags?: string) {
      if (!isSimulated(path)) return real.openSync(path, flags as string);
      files.set(++count, openFile(path, flags));
      return count;
    },
    closeSync: (file: number) => (files.has(file) ? void files.delete(file) : real.closeSync(file)),
    fstatSync: (file: number) => files.get(file)?.stat() ?? real.fstatSync(file),
    fsyncSync: (file: number) => (files.has(file) ? files.get(file)!.sync() : real.fsyncSync(file)),
    ftruncateSync: (file: number, size?: number) =>
      files.has(file) ? files.get(file)!.truncate(size) : real.ftruncateSync(file, size),
    readSync: (file: number, into: Uint8Array) =>
      files.has(file) ? files.get(file)!.read(into) : real.readSync(file, into),
    appendFileSync(file: number | string, content: string | Uint8Array) {
      if (typeof file === "number" && files.has(file)) return void files.get(file)!.write(bytesOf(content));
      return isSimulated(file) ? operations.appendFile(file, content) : real.appendFileSync(file, content);
    },
    createReadStream: (path: string, options?: never) =>
      isSimulated(path) ? pieceOf(path) : real.createReadStream(path, options),
  };
  for (const [name, operation] of Object.entries(operations)) {
    const original = real[`${name}Sync` as keyof typeof real] as unknown as (...given: unknown[]) => unknown;
    changed[`${name}Sync`] ??= (...given: unknown[]) =>
      isSimulated(given[0]) ? (operation as (...given: unknown[]) => unknown)(...given) : original(...given);
  }
  return { ...real, ...changed, default: { ...real, ...changed } } as typeof sync;
}

async function* pieceOf(path: string) {
  await currentProcess()?.turn();
  yield operations.readFile(path);
}

/** Returns `real` without waiting in simulated processes. For `vi.mock("node:timers/promises")`. */
export const simulatedTimers = (real: typeof timers): typeof timers => {
  const setTimeout = (async (milliseconds?: number, ...rest: never[]) => {
    const process = currentProcess();
    if (process === null) return real.setTimeout(milliseconds, ...rest);
    await process.turn();
    return undefined;
  }) as typeof real.setTimeout;
  return { ...real, setTimeout, default: { ...real, setTimeout } } as typeof timers;
};
