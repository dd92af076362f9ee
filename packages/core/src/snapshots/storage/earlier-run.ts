import { join } from "node:path";
import { PeriodicEvalError } from "../../errors.ts";
import type { Row } from "../../contracts/evaluation.ts";
import { nodeFiles, type FileSystem } from "./files.ts";
import { keptRows } from "./kept-rows.ts";
import { runPaths } from "./layout.ts";
import { keyText } from "../order.ts";
import { listIfPresent, scanSnapshots, type RunProblem } from "./scan.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";

/** What another run measured at its starts. */
export interface EarlierRun {
  /** As it was named. */
  readonly path: string;
  /** Files that look like snapshots and cannot be read as such. */
  readonly problems: readonly RunProblem[];
  /** What was measured before step 1 under an id: in the phase of this name, else in the first that has it. */
  startOf(phase: string, id: string): Snapshot | null;
  /** @throws PeriodicEvalError `store` where they cannot be read. */
  rows(snapshot: Snapshot): Promise<readonly Row[]>;
}

/**
 * Reads the snapshots of another run, which is not locked and may be running.
 *
 * @param path a run's folder, its `periodic_eval`, or a phase's folder in that.
 * @throws PeriodicEvalError `config` where it holds no snapshot.
 */
export async function readEarlierRun(path: string, fs: FileSystem = nodeFiles): Promise<EarlierRun> {
  const { root } = runPaths(path);
  const isRun = (await listIfPresent(root, fs)).length > 0;
  const { found, problems } = await scanSnapshots(isRun ? root : join(path), fs);
  if (found.length === 0) {
    throw new PeriodicEvalError({
      code: "config",
      where: "session option baseline",
      got: `${path}, in which there is no snapshot${problems.length === 0 ? "" : ` that can be read: ${problems[0]!.message}`}`,
      expected: "the folder of an earlier run, or its folder of snapshots",
      fix: 'Name the folder that was given as run, or write "phase_start".',
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
      return starts.find((one) => one.phase === phase) ?? starts[0] ?? null;
    },
    async rows(snapshot) {
      return snapshot.samples === null ? [] : keptRows(files.get(keyText(snapshot))!, fs);
    },
  };
}
