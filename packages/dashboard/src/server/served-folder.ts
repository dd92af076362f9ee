import { createHash } from "node:crypto";
import { basename } from "node:path";
import type { RunRecord } from "@periodic-eval/contracts";
import { LRUCache } from "lru-cache";
import pLimit from "p-limit";
import type { PageWithPolicy } from "../html/document.ts";
import { containedFiles, type ContainedFiles } from "./contained-files.ts";
import { findRuns, versionOf, type FoundRun, type FoundRuns } from "./find-runs.ts";
import { readFound, type ReadOptions, type ReadRun } from "./read-run.ts";
import { rowReader } from "./row-index.ts";

/** The served folder as one request sees it. */
export interface ServedFolder {
  readonly rootName: string;
  /** The secret that pages send with labels; null if this server takes none. */
  readonly labelToken: string | null;
  readonly signal: AbortSignal;
  /** Reading them lets other requests run, and ends when the request is abandoned. */
  readonly files: ContainedFiles;
  readonly rows: ReturnType<typeof rowReader>;
  /** Finds the runs in a folder and below it. Throws if the folder itself cannot be read. */
  readonly find: (folder: string) => Promise<FoundRuns>;
  /** Returns the version of a folder, which clients follow. It may be two seconds old, and is older than what is read after it. */
  readonly look: (folder: string) => Promise<string>;
  /** Whether this version of a run is in memory. */
  readonly isKept: (run: FoundRun) => Promise<boolean>;
  readonly read: (run: FoundRun) => Promise<ReadRun>;
  /** Makes a reply. The memory for replies is limited: of large ones, one is made at a time. */
  readonly make: <T>(work: () => Promise<T>, size: ReplySize) => Promise<T>;
  /** Returns the page that was made from these runs, or makes it. Clients that follow a run share its pages. */
  readonly page: (
    name: string,
    runs: readonly FoundRun[],
    work: () => Promise<PageWithPolicy>,
    size: ReplySize,
  ) => Promise<PageWithPolicy>;
}

/** `large`: needs the memory of many measurements. */
export type ReplySize = "small" | "large";

/** Characters of the pages that are kept, and snapshots of the runs that are kept. */
const [keptCharacters, keptSnapshots] = [64 * 2 ** 20, 100_000];

/** Milliseconds for which a version is not looked up again, also as a multiple of the time that this took; and of how many folders. */
const [pollMs, restFactor, followedFolders] = [2000, 20, 1000];

/** Small replies that are made at a time. */
const smallReplies = 8;

/** Milliseconds of work after which events are handled: connections, timers and other replies. */
const breakMs = 15;

/** Returns the folder as the server reads it, and a function that returns the version of a folder to the clients that follow it. */
export function servedFolder(
  root: string,
  readResults: ReadOptions["readResults"],
  maxFileBytes: number | undefined,
  labelToken: string | null = null,
) {
  const contained = containedFiles(root, maxFileBytes === undefined ? {} : { maxFileBytes });
  const isShown = ({ kind }: FoundRun): boolean => kind !== "results" || readResults !== null;
  const rows = rowReader();
  const [pages, records] = [keptPages(), keptRuns()];
  // A search reads thousands of folders, also for clients that have left, so it must not run for each client.
  const find = coalesced((folder) => findRuns(folder, contained, isShown));
  const followed = keptVersions((folder) => versionBelow(folder, contained, isShown));
  const look = async (folder: string) => (await followed.fetch(folder))!;
  const replies = { small: pLimit(smallReplies), large: pLimit(1) };
  const oneResult = pLimit(1);
  const beforePart = breaks();

  function forRequest(signal: AbortSignal): ServedFolder {
    const files = filesInParts(contained, () => beforePart(signal));
    // Looks once per request, because a run may have thousands of files. The next request sees later changes.
    const versions = new Map<string, Promise<string>>();
    const versionOnce = (run: FoundRun): Promise<string> => {
      const version = versions.get(run.path) ?? versionOf(run, contained, "files");
      versions.set(run.path, version);
      return version;
    };
    const keptRecord = async (run: FoundRun): Promise<RunRecord | null> => {
      const entry = records.get(run.path);
      return entry !== undefined && entry.version === (await versionOnce(run)) ? entry.record : null;
    };
    const make: ServedFolder["make"] = async (work, size) =>
      replies[size](async () => {
        signal.throwIfAborted();
        return work();
      });
    return {
      rootName: basename(root),
      labelToken,
      signal,
      files,
      rows,
      find,
      look,
      make,
      isKept: async (run) => (await keptRecord(run)) !== null,
      async read(run) {
        const inTurn =
          readResults &&
          ((file: string) =>
            oneResult(async () => {
              signal.throwIfAborted();
              return readResults(file, files);
            }));
        const read = await readFound(run, {
          files,
          rows,
          readResults: inTurn,
          async record(readRecord) {
            const version = await versionOnce(run);
            const record = (await keptRecord(run)) ?? (await readRecord());
            records.set(run.path, { version, record });
            return record;
          },
        });
        // `readFound` reports an aborted read as a damaged file.
        signal.throwIfAborted();
        return read;
      },
      async page(name, runs, work, size) {
        // Not all files of the other kinds are known.
        if (runs.some(({ kind }) => kind !== "callbacks")) return make(work, size);
        const keys: string[] = [];
        for (const run of runs) keys.push(run.path, await versionOnce(run));
        return sharedPage(pages, JSON.stringify([name, keys]), signal, async () => make(work, size));
      },
    };
  }
  return { forRequest, look };
}

/** Keeps one look at the files for all clients that follow a folder. It takes at most a twentieth of a processor. */
const keptVersions = (search: (folder: string) => Promise<string>) =>
  new LRUCache<string, string>({
    max: followedFolders,
    ttl: pollMs,
    async fetchMethod(folder, _, { options }) {
      const began = performance.now();
      const version = await search(folder);
      options.ttl = Math.max(pollMs, restFactor * (performance.now() - began));
      return version;
    },
  });

const keptPages = () =>
  new LRUCache<string, PageWithPolicy, () => Promise<PageWithPolicy>>({
    maxSize: keptCharacters,
    maxEntrySize: keptCharacters / 4,
    sizeCalculation: ({ markup }) => markup.length,
    fetchMethod: (_key, _stale, { context: make }) => make(),
  });

const keptRuns = () =>
  new LRUCache<string, { readonly version: string; readonly record: RunRecord }>({
    maxSize: keptSnapshots,
    maxEntrySize: keptSnapshots / 4,
    sizeCalculation: ({ record: { phases } }) =>
      phases.reduce((sum, { snapshots }) => sum + snapshots.length, 1),
  });

/** Returns a function that ends an abandoned request, and lets other work run: reading a small file is synchronous. */
function breaks() {
  let lastBreak = performance.now();
  return async (signal: AbortSignal): Promise<void> => {
    if (performance.now() - lastBreak > breakMs) {
      await new Promise((resolve) => setImmediate(resolve));
      lastBreak = performance.now();
    }
    signal.throwIfAborted();
  };
}

/** Returns files that call `beforePart` before each read. */
const filesInParts = (contained: ContainedFiles, beforePart: () => Promise<void>): ContainedFiles => ({
  ...contained,
  async read(path) {
    await beforePart();
    return contained.read(path);
  },
  async *chunks(path, from) {
    for await (const chunk of contained.chunks(path, from)) {
      await beforePart();
      yield chunk;
    }
  },
});

/** Returns the kept page, or the one that `make` makes; also if another client, for which it was being made, has disconnected. */
async function sharedPage(
  pages: ReturnType<typeof keptPages>,
  key: string,
  signal: AbortSignal,
  make: () => Promise<PageWithPolicy>,
): Promise<PageWithPolicy> {
  let isMaker = false;
  const context = async (): Promise<PageWithPolicy> => {
    isMaker = true;
    return make();
  };
  for (;;) {
    try {
      return (await pages.fetch(key, { context }))!;
    } catch (error) {
      signal.throwIfAborted();
      if (isMaker) throw error;
    }
  }
}

/** Runs of a list whose locks and training curves a watcher looks at. It sees new snapshots of all. */
const watchedRuns = 50;

/** Returns a string that changes with the runs in a folder and below it. Cheap: reads no snapshot. */
async function versionBelow(
  folder: string,
  files: ContainedFiles,
  isShown: (run: FoundRun) => boolean,
): Promise<string> {
  const { runs } = await findRuns(folder, files, isShown);
  const here = runs.filter(({ path }) => path === folder && folder !== "");
  const watched = here.length > 0 ? here : runs.slice(0, watchedRuns);
  const versions = await Promise.all(watched.map((run) => versionOf(run, files, "folders")));
  const times = here.length > 0 ? [] : runs.map(({ path, writtenAt }) => [path, writtenAt.getTime()]);
  return createHash("sha1")
    .update(JSON.stringify([versions, times]))
    .digest("hex");
}

/**
 * Returns `work` so that it runs once for all callers that wait for the same key. A caller that comes while it runs waits for
 * the next run, and so never receives what was read before its call.
 */
export function coalesced<T>(work: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const waiting = new Map<string, Promise<T>>();
  const running = new Map<string, Promise<T>>();
  return (key) => {
    const next =
      waiting.get(key) ??
      Promise.resolve(running.get(key))
        .catch(() => undefined)
        .then(async () => {
          waiting.delete(key);
          running.set(key, next);
          return work(key);
        })
        .finally(() => running.get(key) === next && running.delete(key));
    waiting.set(key, next);
    return next;
  };
}
