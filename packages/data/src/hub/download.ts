import { PeriodicEvalError } from "@periodic-eval/contracts";
import { storeError, nodeFiles } from "@periodic-eval/store";
import {
  constants,
  createHash,
  dirname,
  type FileHandle,
  open,
  rename,
  rm,
  stat,
} from "@periodic-eval/store/platform";
import type { HubCache } from "./cache.ts";
import type { HubRepo } from "./hub-id.ts";
import type { HubFile, Repository } from "./repository.ts";
import { hubError, reasonOf } from "./request-error.ts";

/** A commit of a repository, and the cache that holds its files. */
export interface HubCommit {
  readonly repo: HubRepo;
  readonly cache: HubCache;
  readonly repository: Repository;
  readonly commit: string;
}

/**
 * Downloads a file of a commit into the cache unless it is there. Only a complete file whose hash matches is placed.
 *
 * @param onBytes Called with the number of bytes on disk, before and during the download.
 */
export async function fetchFile(
  { repo, cache, repository, commit }: HubCommit,
  file: HubFile,
  onBytes: (done: number) => void = () => {},
): Promise<void> {
  const { name, bytes, hash } = file;
  if (await cache.has(commit, name)) return;
  const expected = { repo, where: `${repo.where}, ${name} on the hub`, bytes, hash };
  await download(cache.blob(hash), expected, (from) => repository.read(commit, file, from), onBytes);
  await cache.place(commit, name, hash);
}

/** Returns the `store` error for a file of the cache that cannot be written; any other error unchanged. */
export const cacheError = (cache: HubCache, error: unknown): unknown =>
  !PeriodicEvalError.is(error) && typeof (error as NodeJS.ErrnoException | null)?.syscall === "string"
    ? storeError(cache.root, error, "a cache that can be written")
    : error;

/** A file to download. */
interface ExpectedFile {
  readonly repo: HubRepo;
  /** Names the file in errors. */
  readonly where: string;
  readonly bytes: number;
  /** SHA-256 of the content (64 digits), or git's SHA-1 of the blob (40 digits). */
  readonly hash: string;
}

/**
 * Downloads a blob to `path.incomplete` and renames it to `path` once its size and hash match. Resumes a partial download.
 * Each chunk is written at its own offset, so that two processes may download the same blob at once.
 *
 * @param read Streams the bytes from a position on.
 * @param onBytes Called with the number of bytes on disk.
 * @throws PeriodicEvalError `model` or `data`, by the repository's type, if the transfer stops early or the content does not match.
 */
async function download(
  path: string,
  expected: ExpectedFile,
  read: (from: number) => AsyncIterable<Uint8Array>,
  onBytes: (done: number) => void,
): Promise<void> {
  const { repo, where, bytes, hash } = expected;
  if ((await sizeOf(path)) === bytes) return;
  const draft = `${path}.incomplete`;
  await nodeFiles.makeFolder(dirname(path));
  const file = await open(draft, constants.O_RDWR | constants.O_CREAT);
  try {
    await fill(file, expected, read, onBytes);
    await file.datasync();
    const actual = await hashOf(file, bytes, hash.length);
    if (actual !== hash) {
      await rm(draft, { force: true });
      throw hubError(repo, {
        where,
        got: `content with the hash ${actual}`,
        expected: `the hash ${hash} that the hub lists`,
        fix: "Run it again; if the error persists, the hub or a proxy changes files.",
      });
    }
  } finally {
    await file.close();
  }
  try {
    await rename(draft, path);
  } catch (error) {
    // Another process may have finished the same download first.
    if ((await sizeOf(path)) !== bytes) throw error;
  }
}

async function fill(
  file: FileHandle,
  { repo, where, bytes }: ExpectedFile,
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
          throw hubError(repo, {
            where,
            got: `more than ${bytes} bytes`,
            expected: "the size that the hub lists",
            fix: "Run it again: the partial download was deleted.",
          });
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
    throw hubError(repo, {
      where,
      got: `${done} of ${bytes} bytes${reason}`,
      expected: "the whole file",
      fix: "Check the network and run it again: the download resumes.",
    });
  }
}

async function writeAll(file: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < chunk.length;) {
    done += (await file.write(chunk, done, chunk.length - done, position + done)).bytesWritten;
  }
}

/** Whether the stream failed, rather than the disk or a check of this package. */
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
