import { createHash } from "node:crypto";
import { basename } from "node:path";
import type { RunRecord } from "@periodic-eval/contracts";
import type { PageWithPolicy } from "../html/document.ts";
import { containedFiles, type ContainedFiles } from "./contained-files.ts";
import { findRuns, type FoundRun, type FoundRuns } from "./find-runs.ts";
import { keptResults, versionOf, type RunVersion } from "./run-version.ts";
import { pageTurns, type Turn } from "./page-turns.ts";
import { readFound, type ReadOptions, type ReadRun } from "./read-run.ts";
import { rowReader } from "./row-index.ts";

/** The served folder as one request sees it. */
export interface ServedRequest {
  readonly rootName: string;
  readonly signal: AbortSignal;
  /** Finds the runs in a folder and below it. Throws if the folder itself cannot be read. */
  readonly find: (folder: string) => Promise<FoundRuns>;
  /** Returns the version of a folder, from which clients follow it. */
  readonly look: (folder: string) => Promise<string>;
  /** Makes a reply from files. Requests take turns. */
  readonly make: <T>(work: (folder: ServedFolder) => Promise<T>) => Promise<T>;
  /** As `make`, for reads that come before the reply. */
  readonly prepare: ServedRequest["make"];
  /** Returns the page that was made from these runs, or makes it. Clients that follow a run share its pages. */
  readonly page: (
    name: string,
    runs: readonly FoundRun[],
    work: (folder: ServedFolder) => Promise<PageWithPolicy>,
  ) => Promise<PageWithPolicy>;
}

/** The served folder as the work on one reply reads it. */
export interface ServedFolder {
  readonly files: ContainedFiles;
  readonly rows: ReturnType<typeof rowReader>;
  readonly signal: AbortSignal;
  /** Whether this version of a run is in memory. */
  readonly isKept: (run: FoundRun) => Promise<boolean>;
  readonly read: (run: FoundRun) => Promise<ReadRun>;
}

/** Characters of the pages that are kept, and snapshots of the runs that are kept. */
const [keptCharacters, keptSnapshots] = [64 * 2 ** 20, 100_000];

/** Returns the folder as the server reads it: for requests, and for clients that follow changes. */
export function servedFolder(
  root: string,
  readResults: ReadOptions["readResults"],
  maxFileBytes: number | undefined,
) {
  const contained = containedFiles(root, maxFileBytes === undefined ? {} : { maxFileBytes });
  const isShown = ({ kind }: FoundRun): boolean => kind !== "results" || readResults !== null;
  const pages = keptResults<PageWithPolicy>(keptCharacters, ({ markup }) => markup.length);
  const rows = rowReader();
  const records = keptResults<RunRecord>(keptSnapshots, ({ phases }) =>
    phases.reduce((sum, { snapshots }) => sum + snapshots.length, 0),
  );
  // A search reads thousands of folders, also for clients that have left, so it must not run for each client.
  const find = coalesced((folder) => findRuns(folder, contained, isShown));
  const look = coalesced((folder) => versionBelow(folder, contained, isShown));
  const createPage = pageTurns();
  type VersionOf = (run: FoundRun) => Promise<RunVersion>;
  const folderFor = (turn: Turn, signal: AbortSignal, versionOnce: VersionOf): ServedFolder => {
    const { untilAbort, inTurns: files } = requestFiles(contained, turn, signal);
    return {
      files,
      rows,
      signal,
      isKept: async (run) => records.has(run.path) && records.find(run.path, await versionOnce(run)) !== null,
      async read(run) {
        // Reading benchmark results is one part, in which it must not wait for another turn.
        const inTurn = readResults && ((file: string) => turn(() => readResults(file, untilAbort)));
        const read = await readFound(run, { files, readResults: inTurn, records, rows });
        // `readFound` reports an aborted read as a damaged file.
        signal.throwIfAborted();
        return read;
      },
    };
  };
  const forRequest = (signal: AbortSignal, sent: () => Promise<void>): ServedRequest => {
    // Looks once per request, because a run may have thousands of files. The next request sees later changes.
    const versions = new Map<string, Promise<RunVersion>>();
    const versionOnce: VersionOf = (run) => {
      const version = versions.get(run.path) ?? versionOf(run, contained, "files");
      versions.set(run.path, version);
      return version;
    };
    const makerUntil =
      (end?: () => Promise<void>): ServedRequest["make"] =>
      (work) =>
        createPage(signal, (turn, own) => work(folderFor(turn, own, versionOnce)), end);
    const make = makerUntil(sent);
    return {
      rootName: basename(root),
      signal,
      find,
      look,
      prepare: makerUntil(),
      make,
      // A request that waits for a page that another one makes takes no place of those that make pages.
      page: async (name, runs, work) =>
        shared({ pages, name, version: await versionOfAll(runs, versionOnce), signal }, () => make(work)),
    };
  };
  return { forRequest, look };
}

/** Returns files that stop when a signal is aborted: those that are read within one turn, and those that take a turn for each part. */
function requestFiles(contained: ContainedFiles, turn: Turn, signal: AbortSignal) {
  const untilAbort: ContainedFiles = {
    async list(folder) {
      signal.throwIfAborted();
      return contained.list(folder);
    },
    async read(path) {
      signal.throwIfAborted();
      return contained.read(path);
    },
    timeOf: (path) => contained.timeOf(path),
    stamps: (folder, name) => contained.stamps(folder, name),
    chunks: (path, from) => contained.chunks(path, from),
  };
  const inTurns: ContainedFiles = {
    ...untilAbort,
    read: (path) => turn(() => contained.read(path)),
    async *chunks(path, from) {
      const parts = contained.chunks(path, from);
      try {
        for (;;) {
          const part = await turn(() => parts.next());
          if (part.done === true) return;
          yield part.value;
        }
      } finally {
        await parts.return();
      }
    },
  };
  return { untilAbort, inTurns };
}

/** Returns the kept page of a version, or makes it. A version of null is not kept. */
async function shared(
  {
    pages,
    name,
    version,
    signal,
  }: {
    readonly pages: ReturnType<typeof keptResults<PageWithPolicy>>;
    readonly name: string;
    readonly version: RunVersion | null;
    readonly signal: AbortSignal;
  },
  make: () => Promise<PageWithPolicy>,
): Promise<PageWithPolicy> {
  if (version === null) return make();
  for (let kept = pages.find(name, version); kept !== null; kept = pages.find(name, version)) {
    try {
      return await kept;
    } catch {
      // The client that it was made for may have disconnected.
      signal.throwIfAborted();
    }
  }
  const made = make();
  pages.add(name, version, made);
  return made;
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
  const own = runs.filter(({ path }) => path === folder && folder !== "");
  const watched = own.length > 0 ? own : runs.slice(0, watchedRuns);
  const versions = await Promise.all(watched.map((run) => versionOf(run, files, "folders")));
  const times = own.length > 0 ? [] : runs.map(({ path, writtenAt }) => [path, writtenAt.getTime()]);
  const text = JSON.stringify([versions.map((version) => version.text), times]);
  return createHash("sha1").update(text).digest("hex");
}

/** Returns the version of runs together; null if a run is of a kind whose files are not all known. */
async function versionOfAll(
  runs: readonly FoundRun[],
  versionOfOne: (run: FoundRun) => Promise<RunVersion>,
): Promise<RunVersion | null> {
  if (runs.some(({ kind }) => kind !== "callbacks")) return null;
  const versions: RunVersion[] = [];
  for (const run of runs) versions.push(await versionOfOne(run));
  const texts = versions.map(({ text }, at) => [runs[at]!.path, text]);
  return { text: JSON.stringify(texts), isSettled: versions.every(({ isSettled }) => isSettled) };
}

/**
 * Returns `work` so that it runs once for all callers that wait for the same key. A caller that comes while it runs waits for
 * the next run, and so never receives what was read before its call.
 */
export function coalesced<T>(work: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const latest = new Map<string, { promise: Promise<T>; hasBegun: boolean }>();
  return (key) => {
    const before = latest.get(key);
    if (before?.hasBegun === false) return before.promise;
    const ended = before?.promise.catch(() => undefined) ?? Promise.resolve();
    const run = async (): Promise<T> => {
      await ended;
      entry.hasBegun = true;
      try {
        return await work(key);
      } finally {
        if (latest.get(key) === entry) latest.delete(key);
      }
    };
    const entry = { promise: Promise.resolve() as Promise<unknown> as Promise<T>, hasBegun: false };
    entry.promise = run();
    latest.set(key, entry);
    return entry.promise;
  };
}
