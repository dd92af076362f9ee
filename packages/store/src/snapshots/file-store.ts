import { process } from "#platform";
import * as z from "zod";
import type { Layout, RunProblem, SnapshotKey, SnapshotStore } from "@periodic-eval/contracts";
import { parseOptions, checkPhaseName, functionSchema, printable } from "@periodic-eval/contracts/options";
import { makeFolder } from "../files/atomic-file.ts";
import { readClosings, writeClosing, readTrainingFile, writeTrainingFile } from "./phase-files.ts";
import { nodeFiles, type FileSystem } from "../files/file-system.ts";
import { checkKey, runPaths, snapshotName } from "./layout.ts";
import type { Lease } from "../lock/lease.ts";
import { takeLock, type TakeOptions } from "../lock/lock.ts";
import type { LockOwner } from "../lock/lock-owner.ts";
import { finishWrites, repairRun, addToIndex, rebuildIndex } from "./repair-run.ts";
import { snapshotFinder } from "./scan-snapshots.ts";
import { moveToSuperseded } from "./superseded.ts";
import { readRows, writeSnapshot } from "./snapshot-file.ts";

export interface FileStoreOptions {
  /** Where new snapshots go. Default `nested`: one folder per phase. Both layouts are always read. */
  readonly layout?: Layout;
  /** Called for each file that the store repaired, moved or ignored. Default: `process.emitWarning`. */
  readonly onWarning?: (message: string) => void;
  /** For tests: file operations that fail or die. */
  readonly fs?: FileSystem;
  /** For tests: the process that takes the lock. */
  readonly owner?: LockOwner;
}

const optionsSchema = z.strictObject({
  layout: z.enum(["nested", "flat"]).optional(),
  onWarning: functionSchema("a function of a message").optional(),
  fs: z.custom<FileSystem>().optional(),
  owner: z.custom<LockOwner>().optional(),
} satisfies Record<keyof FileStoreOptions, z.ZodType>);

/**
 * Returns the store on disk. It writes a snapshot to `<runDir>/periodic_eval/<phase>/<id>_step_<N>.json`, its rows to
 * `….samples.jsonl` in the same folder, and a line to `index.jsonl`; superseded snapshots go to `superseded/`. The first write
 * creates the folder.
 *
 * @throws PeriodicEvalError `config` for a wrong option; from its methods, `store` with a path and a fix.
 */
export function fileStore(runDir: string, options: FileStoreOptions = {}): SnapshotStore {
  parseOptions("fileStore options", optionsSchema, options);
  const { layout = "nested", fs = nodeFiles, owner } = options;
  const warn =
    options.onWarning ??
    ((message: string) => process.emitWarning(printable(message), "PeriodicEvalWarning"));
  const paths = runPaths(runDir);
  const finder = snapshotFinder(paths.root, layout, fs);
  let lease: Lease | null = null;
  let problems: readonly RunProblem[] = [];
  const { inTurn, change, completeChange } = turns(async () => {
    if (lease === null) return;
    await finishWrites(paths.root, fs);
    await reindex();
  });

  async function open(): Promise<void> {
    if (lease !== null) return;
    const opened = await openRun(runDir, { fs, ...(owner && { owner }), warn });
    finder.rememberAll(opened.found);
    ({ lease, problems } = opened);
  }

  const find = (key: SnapshotKey) => finder.find(key, lease !== null);
  const reindex = async () => rebuildIndex(paths, await finder.scan(), fs);

  return {
    open: () => inTurn(open),
    put: (snapshot, rows) =>
      change(async () => {
        checkKey(snapshot);
        await open();
        const path = await finder.pathToWrite(snapshot);
        const written = await writeSnapshot(path, snapshot, rows, fs);
        finder.remember(written, path);
        if (!(await addToIndex(paths, { path, snapshot: written }, fs))) await reindex();
      }),
    get: async (key) => (await find(key))?.snapshot ?? null,
    async rows(key) {
      const entry = await find(key);
      if (entry === null) return [];
      return readRows(entry.path, entry.snapshot.samples, fs);
    },
    list: async () => (await finder.scan()).map(({ snapshot }) => snapshot),
    problems: async () => problems,
    lost: () => lease?.lost ?? null,
    supersede: (key, why) =>
      change(async () => {
        checkKey(key);
        await open();
        const entry = await find(key);
        if (entry === null) return;
        const { phase, id, step } = key;
        const target = { folder: phase, name: snapshotName(key), suffix: ".json" } as const;
        await moveToSuperseded(runDir, entry.path, target, { key: { phase, id, step }, why }, fs);
        await reindex();
      }),
    ...recordsOfPhases(runDir, fs, (write) =>
      inTurn(async () => {
        await open();
        await write();
      }),
    ),
    close: () =>
      inTurn(async () => {
        // On a disk that still fails, the next session completes the change.
        await completeChange().catch(() => undefined);
        await lease?.release();
        lease = null;
      }),
  };
}

/** Takes the lock of a run and repairs the run. */
async function openRun(
  runDir: string,
  { fs, owner, warn }: Pick<TakeOptions, "owner"> & { fs: FileSystem; warn: (message: string) => void },
) {
  const { root, lock } = runPaths(runDir);
  await makeFolder(root, fs);
  const lease = await takeLock(lock, fs, { ...(owner && { owner }), onWait: warn });
  try {
    return { lease, ...(await repairRun(runDir, fs, warn)) };
  } catch (error) {
    await lease.release();
    throw error;
  }
}

/** The store's methods for where phases closed, and for what their trainers logged. */
function recordsOfPhases(
  runDir: string,
  fs: FileSystem,
  locked: (write: () => Promise<void>) => Promise<void>,
): Pick<SnapshotStore, "recordClosing" | "closings" | "recordTraining" | "training"> {
  const { closings } = runPaths(runDir);
  return {
    recordClosing: (closing) => locked(() => writeClosing(closings, closing, fs)),
    closings: () => readClosings(closings, fs),
    async recordTraining(training) {
      checkPhaseName("phase", training.phase);
      await locked(() => writeTrainingFile(runDir, training, fs));
    },
    training: (phase) => readTrainingFile(runDir, phase, fs),
  };
}

/**
 * Returns a queue of writes: background grading may write while a window does. `change` is for those of several steps: after one
 * that failed half-way, it first calls `complete`, as `completeChange` does.
 */
function turns(complete: () => Promise<void>) {
  let queue: Promise<unknown> = Promise.resolve();
  let isHalfway = false;
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = queue.then(work);
    queue = turn.catch(() => undefined);
    return turn;
  }
  async function completeChange(): Promise<void> {
    if (isHalfway) await complete();
    isHalfway = false;
  }
  const change = (work: () => Promise<void>) =>
    inTurn(async () => {
      await completeChange();
      isHalfway = true;
      await work();
      isHalfway = false;
    });
  return { inTurn, change, completeChange };
}
