import { realpath } from "node:fs/promises";
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
    const { run, condition } = await readLabelled(name);
    const folder = run.runDir;
    if (run.phases.length === 0) {
      throw new PeriodicEvalError({
        code: "data",
        where: folder,
        got: "no snapshot",
        expected: "snapshots under periodic_eval/",
        fix: "Name the folder that was given as run_dir, or condition=folder.",
      });
    }
    const place = await realpath(folder);
    if (seen.has(place)) {
      throw new PeriodicEvalError({
        code: "config",
        where: "runs",
        got: `${folder} twice`,
        expected: "each run once: one run counted twice would narrow the intervals",
        fix: "Leave the second one out.",
      });
    }
    seen.add(place);
    runs.push({ run, condition });
  }
  return runs;
}

/** A name that is a folder with snapshots is that folder, though there be a `=` in it (`runs/lr=1e-4`). */
async function readLabelled(name: string): Promise<LabelledRun> {
  const whole = await readRun(name);
  const at = name.indexOf("=");
  if (at === -1 || whole.phases.length > 0) return { run: whole, condition: null };
  return { run: await readRun(name.slice(at + 1)), condition: name.slice(0, at) };
}
