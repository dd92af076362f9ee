import { PeriodicEvalError } from "@periodic-eval/contracts";
import { storeError } from "@periodic-eval/store";
import type { HubCache } from "./cache.ts";
import { download } from "./download.ts";
import type { HubRepo } from "./hub-id.ts";
import type { HubFile, Repository } from "./repository.ts";

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
