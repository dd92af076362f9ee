import type { Row, RunProblem, Snapshot } from "@periodic-eval/contracts";
import { configError } from "@periodic-eval/contracts/options";
import { keyText } from "./run-order.ts";
import { nodeFiles, type FileSystem } from "../files/file-system.ts";
import { runPaths } from "./layout.ts";
import { listIfPresent } from "../files/read-file.ts";
import { scanSnapshots } from "./scan-snapshots.ts";
import { readRows } from "./snapshot-file.ts";

/** The measurements of another run at the start of its phases, which serve as a baseline. */
export interface EarlierRun {
  /** The path as the user gave it. */
  readonly path: string;
  /** Damaged and edited snapshots. */
  readonly problems: readonly RunProblem[];
  /** Returns the snapshot of `id` before step 1, from the phase of this name, else from the first phase that has one. */
  startOf(phase: string, id: string): Snapshot | null;
  rows(snapshot: Snapshot): Promise<readonly Row[]>;
}

/**
 * Reads the snapshots of another run, without locking it. The run may be in progress.
 *
 * @param path The run's folder, its `periodic_eval` folder, or a phase's folder in that.
 * @throws PeriodicEvalError `config` if it has no snapshot.
 */
export async function readEarlierRun(path: string, fs: FileSystem = nodeFiles): Promise<EarlierRun> {
  const { root } = runPaths(path);
  const isRun = (await listIfPresent(root, fs)).length > 0;
  const { found, problems } = await scanSnapshots(isRun ? root : path, fs);
  if (found.length === 0) {
    throw configError({
      where: "session options",
      path: ["baseline"],
      got: `${path}, which has no ${problems.length === 0 ? "snapshot" : `readable snapshot: ${problems[0]!.message}`}`,
      expected: "the folder of an earlier run, or its folder of snapshots",
      fix: 'Give the `runDir` of that run, or "phase_start".',
    });
  }
  const files = new Map(found.map((one) => [keyText(one.snapshot), one.path]));
  return {
    path,
    problems,
    startOf(phase, id) {
      const starts = found
        .map(({ snapshot }) => snapshot)
        .filter((one) => one.id === id && one.crossed.includes("start"));
      const own = starts.find((one) => one.phase === phase);
      // The start of another phase does not stand in for one that is damaged.
      const isLost = problems.some(
        ({ key, invalid }) =>
          (key === null && invalid) || (key?.phase === phase && key.id === id && key.step === 0),
      );
      return own ?? (isLost ? null : (starts[0] ?? null));
    },
    async rows(snapshot) {
      return readRows(files.get(keyText(snapshot))!, snapshot.samples, fs);
    },
  };
}
