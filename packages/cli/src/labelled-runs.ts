import { PeriodicEvalError } from "@periodic-eval/core";
import { readRun, type RunRecord } from "@periodic-eval/core/snapshots";

/** A run and what it stands for among others. */
export interface LabelledRun {
  readonly run: RunRecord;
  /** Null where the command line did not tell it. */
  readonly condition: string | null;
}

/**
 * Reads runs named as `folder` or `condition=folder`.
 *
 * @throws PeriodicEvalError `data` for a folder without snapshots, `config` for one named twice.
 */
export async function readLabelledRuns(names: readonly string[]): Promise<readonly LabelledRun[]> {
  const seen = new Set<string>();
  const runs: LabelledRun[] = [];
  for (const name of names) {
    const at = name.indexOf("=");
    const folder = name.slice(at + 1);
    if (seen.has(folder)) {
      throw new PeriodicEvalError({
        code: "config",
        where: "runs",
        got: `${folder} twice`,
        expected: "each run once: one run counted twice would narrow the intervals",
        fix: "Leave the second one out.",
      });
    }
    seen.add(folder);
    const run = await readRun(folder);
    if (run.phases.length === 0) {
      throw new PeriodicEvalError({
        code: "data",
        where: folder,
        got: "no snapshot",
        expected: "snapshots under periodic_eval/",
        fix: "Name the folder that was given as run_dir, or condition=folder.",
      });
    }
    runs.push({ run, condition: at === -1 ? null : name.slice(0, at) });
  }
  return runs;
}
