// The exports of `node.ts` for browsers: files in memory or in the browser's storage, and the few other parts of Node that the
// packages use. The conditions of package.json choose.
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { bytesOf } from "./browser/file-tree.ts";

export * from "./browser/files.ts";
export { constants } from "./browser/file-tree.ts";
/** POSIX paths. The working directory is `/`. */
export { basename, dirname, join, relative, resolve } from "pathe";

/** Returns a hasher as `node:crypto` has it. Browsers have `sha256` only: nothing outside of downloads needs another one. */
export function createHash(algorithm: "sha256" | "sha1") {
  if (algorithm !== "sha256")
    throw new TypeError(
      `[periodic-eval] createHash in browsers: got "${algorithm}", expected "sha256". Use sha256, or download the files in Node.`,
    );
  // Web Crypto has no synchronous hash, and none that takes its input in pieces.
  const hash = sha256.create();
  const hasher = {
    /** Adds bytes, or a string as UTF-8. */
    update(content: string | ArrayBufferView) {
      hash.update(bytesOf(content));
      return hasher;
    },
    /** Ends the hash. Call it once. */
    digest(encoding: "hex" | "base64"): string {
      const digest = hash.digest();
      return encoding === "hex" ? bytesToHex(digest) : btoa(String.fromCharCode(...digest));
    },
  };
  return hasher;
}

/** The part of Node's `process` that the packages use. A worker or page is a process whose id is a random number. */
export const process = {
  pid: 1 + Math.floor(random() * (2 ** 31 - 1)),
  /** Undefined: no operating system shows which other processes run. */
  platform: undefined,
  env: {} as Record<string, string | undefined>,
  cwd: () => "/",
  emitWarning: (message: string) => console.warn(message),
  /** No signal reaches a page: the events of Node never occur. */
  listenerCount: () => 0,
  on: () => undefined,
  off: () => undefined,
  exit: () => undefined,
  /** Asks whether another process runs. Its lock of the storage ended with it. */
  kill(pid: number): never {
    throw Object.assign(new Error(`ESRCH: no process ${pid}`), { code: "ESRCH" });
  },
};

function random(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]! / 2 ** 32;
}

/** The same in all pages and workers, so that a lock that an earlier one left is known to be of this machine. */
export const hostname = (): string => "browser";
export const homedir = (): string => "/home";
export const tmpdir = (): string => "/tmp";

/** `crypto.randomUUID` exists on pages from https and localhost only. */
export function randomUUID(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytesToHex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

export const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

/** A page does not see its pauses: browsers delay the timers of a hidden page, also of one that works. */
export const pausedSeconds = (): number => 0;

export const byteLength = (text: string): number => new TextEncoder().encode(text).length;

/** Pages read no compressed files. */
export function gunzip(_chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  throw new Error("a compressed file, which browsers do not read here");
}

export function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/** Compares JSON values. */
export function isDeepStrictEqual(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return Object.is(a, b);
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [a, b] as readonly Readonly<Record<string, unknown>>[];
  const names = Object.keys(left!);
  return (
    names.length === Object.keys(right!).length &&
    names.every((name) => Object.hasOwn(right!, name) && isDeepStrictEqual(left![name], right![name]))
  );
}

/** Runs `work` without a limit: nothing ends synchronous work in a browser but closing its worker. */
export const runAtMost = <T>(_milliseconds: number, work: () => T): T => work();
