// The parts of Node that the packages use. `browser.ts` has the same names for browsers: the conditions of package.json choose.
import { pipeline, Readable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import { Script } from "node:vm";
import { createGunzip } from "node:zlib";

export { isUtf8 } from "node:buffer";
export { createHash, randomUUID } from "node:crypto";
export {
  accessSync,
  constants,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
export {
  access,
  link,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
  truncate,
  unlink,
  writeFile,
  type FileHandle,
} from "node:fs/promises";
export { homedir, hostname, tmpdir } from "node:os";
export { basename, dirname, join, relative, resolve } from "node:path";
export { isDeepStrictEqual } from "node:util";
export { pausedSeconds } from "./pauses.ts";

export const process: NodeJS.Process = globalThis.process;

export const sleep = (milliseconds: number): Promise<void> => setTimeout(milliseconds);

/** Decompresses the members of a gzip file. The iteration throws for data that is damaged or cut off. */
export function gunzip(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  // The iteration throws the errors of both streams.
  return pipeline(Readable.from(chunks), createGunzip(), () => undefined);
}

/** Returns the number of UTF-8 bytes of a string. */
export const byteLength = (text: string): number => Buffer.byteLength(text);

const slot = Symbol.for("periodic-eval.limited");
const script = new Script(`globalThis[Symbol.for("periodic-eval.limited")]()`);

// Test runners run modules in contexts with a global object of their own; the script runs in the main one.
const mainGlobal = new Script("globalThis").runInThisContext() as { [slot]?: () => unknown };

/** Runs `work` and ends it after a time, also within a regular expression; costs 0.1 ms. Throws if the time is over. */
export function runAtMost<T>(milliseconds: number, work: () => T): T {
  mainGlobal[slot] = work;
  try {
    return script.runInThisContext({ timeout: milliseconds }) as T;
  } finally {
    delete mainGlobal[slot];
  }
}
