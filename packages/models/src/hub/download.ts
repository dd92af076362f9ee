import { createHash } from "node:crypto";
import { constants, mkdir, open, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { hubError, reasonOf } from "./hub-errors.ts";

export interface Expected {
  /** Names the file in errors. */
  readonly where: string;
  readonly bytes: number;
  /** SHA-256 of the content, or as git names a blob. */
  readonly hash: string;
}

/**
 * Writes a blob to `path`, whose name only a whole and proven file gets. What an earlier try left in `path.incomplete`
 * is gone on from. Bytes go to their own places, so that two processes that fetch the same do not harm each other.
 *
 * @param read a stream of the bytes from a position on
 * @param onBytes told how many of the bytes are here
 */
export async function download(
  path: string,
  expected: Expected,
  read: (from: number) => AsyncIterable<Uint8Array>,
  onBytes: (done: number) => void,
): Promise<void> {
  const { where, bytes, hash } = expected;
  if ((await sizeOf(path)) === bytes) return;
  const draft = `${path}.incomplete`;
  await mkdir(dirname(path), { recursive: true });
  const file = await open(draft, constants.O_RDWR | constants.O_CREAT);
  try {
    await fill(file, expected, read, onBytes);
    await file.datasync();
    const found = await hashOf(file, bytes, hash.length);
    if (found !== hash) {
      await rm(draft, { force: true });
      const fix = "Run it again; where it stays so, the hub or what is between you and it changes files.";
      throw hubError(where, `content with the hash ${found}`, `the hash ${hash} that the hub says`, fix);
    }
  } finally {
    await file.close();
  }
  try {
    await rename(draft, path);
  } catch (error) {
    // Another process may have been faster with the same bytes.
    if ((await sizeOf(path)) !== bytes) throw error;
  }
}

async function fill(
  file: FileHandle,
  { where, bytes }: Expected,
  read: (from: number) => AsyncIterable<Uint8Array>,
  onBytes: (done: number) => void,
): Promise<void> {
  let done = (await file.stat()).size;
  if (done > bytes) {
    await file.truncate(0);
    done = 0;
  }
  onBytes(done);
  let reason = "";
  try {
    if (done < bytes) {
      for await (const chunk of read(done)) {
        if (done + chunk.length > bytes) {
          await file.truncate(0);
          const fix = "Run it again: what it got is thrown away.";
          throw hubError(where, `more than ${bytes} bytes`, "as many as the hub says", fix);
        }
        await writeAll(file, chunk, done);
        done += chunk.length;
        onBytes(done);
      }
    }
  } catch (error) {
    if (!isTransfer(error)) throw error;
    reason = ` (${reasonOf(error)})`;
  }
  if (done < bytes) {
    const fix = "Check the network and run it again: it goes on from there.";
    throw hubError(where, `${done} of ${bytes} bytes${reason}`, "the whole file", fix);
  }
}

async function writeAll(file: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < chunk.length;) {
    done += (await file.write(chunk, done, chunk.length - done, position + done)).bytesWritten;
  }
}

/** A stream that broke; not a disk that is full, nor an error of ours. */
function isTransfer(error: unknown): boolean {
  return !PeriodicEvalError.is(error) && typeof (error as NodeJS.ErrnoException | null)?.syscall !== "string";
}

async function hashOf(file: FileHandle, bytes: number, length: number): Promise<string> {
  const hash = length === 64 ? createHash("sha256") : createHash("sha1").update(`blob ${bytes}\0`);
  for await (const chunk of file.createReadStream({ start: 0, autoClose: false }))
    hash.update(chunk as Uint8Array);
  return hash.digest("hex");
}

async function sizeOf(path: string): Promise<number | null> {
  return stat(path).then(
    ({ size }) => size,
    () => null,
  );
}
