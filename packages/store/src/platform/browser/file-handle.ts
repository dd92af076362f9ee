import { fileError } from "./file-error.ts";
import { constants, tree, type Entry, type File } from "./file-tree.ts";

export interface Stats {
  readonly size: number;
  readonly mtimeMs: number;
  readonly mtimeNs: bigint;
  readonly dev: number;
  readonly ino: number;
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

export function statsOf(entry: Entry): Stats {
  return {
    size: entry.kind === "file" ? entry.size : 0,
    mtimeMs: entry.mtimeMs,
    mtimeNs: BigInt(Math.round(entry.mtimeMs * 1e6)),
    dev: 0,
    ino: entry.id,
    isFile: () => entry.kind === "file",
    isDirectory: () => entry.kind === "folder",
    isSymbolicLink: () => false,
  };
}

export const bytesOf = (content: string | ArrayBufferView): Uint8Array =>
  typeof content === "string"
    ? new TextEncoder().encode(content)
    : new Uint8Array(content.buffer, content.byteOffset, content.byteLength);

/** The part of Node's file handles that the packages use. */
export class FileHandle {
  readonly #entry: Entry;
  readonly #path: string;
  #release: (() => void) | null;
  #position: number;

  constructor(path: string, entry: Entry, isAppending: boolean) {
    this.#entry = entry;
    this.#path = path;
    this.#release = entry.kind === "file" ? tree.hold(entry) : () => undefined;
    this.#position = isAppending && entry.kind === "file" ? entry.size : 0;
  }

  get #file(): File {
    if (this.#release === null) throw fileError("EBADF", "read", this.#path);
    if (this.#entry.kind === "file") return this.#entry;
    throw fileError("EISDIR", "read", this.#path);
  }

  async stat(): Promise<Stats> {
    return statsOf(this.#entry);
  }

  async read(
    into: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesRead: number }> {
    const some = (await tree.read(this.#file)).subarray(position, position + length);
    into.set(some, offset);
    return { bytesRead: some.length };
  }

  async readFile(): Promise<Uint8Array> {
    return (await tree.read(this.#file)).slice();
  }

  async writeFile(content: string | ArrayBufferView): Promise<void> {
    const bytes = bytesOf(content);
    await tree.write(this.#file, bytes, this.#position);
    this.#position += bytes.length;
  }

  async write(
    from: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesWritten: number }> {
    await tree.write(this.#file, from.subarray(offset, offset + length), position);
    return { bytesWritten: length };
  }

  async *createReadStream(_options?: object): AsyncGenerator<Uint8Array, void> {
    yield await this.readFile();
  }

  truncate(size = 0): Promise<void> {
    return tree.truncate(this.#file, size);
  }

  sync(): Promise<void> {
    return tree.sync();
  }

  datasync(): Promise<void> {
    return tree.sync();
  }

  async close(): Promise<void> {
    this.#release?.();
    this.#release = null;
  }
}

/** Opens a file or folder with the flags `r`, `w`, `wx` or `a`, or with numbers of `constants`. */
export async function open(path: string, flags: string | number = "r"): Promise<FileHandle> {
  const isMaking = typeof flags === "number" ? (flags & constants.O_CREAT) !== 0 : flags !== "r";
  const found = isMaking ? tree.find(path) : tree.get(path, "open");
  if (found !== null && flags === "wx") throw fileError("EEXIST", "open", path);
  if (found?.kind === "folder" && isMaking) throw fileError("EISDIR", "open", path);
  const entry = found ?? tree.makeFile(path);
  const handle = new FileHandle(path, entry, flags === "a");
  if (flags === "w" && found !== null) await handle.truncate();
  return handle;
}
