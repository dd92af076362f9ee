import { realpath } from "node:fs/promises";
import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
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
 * @throws PeriodicEvalError `data` for a folder without snapshots, `config` for one named twice, or for a copy of another.
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
    refuseCopy(run, runs);
    runs.push({ run, condition });
  }
  return runs;
}

/**
 * No two measurements are the same in time, seconds and weights: a run whose snapshots are all in another is a copy of it, or
 * that went on from a copy. Runs that began as one (a phase trained once, then two ways on) are two, once each
 * has a snapshot of its own.
 */
function refuseCopy(run: RunRecord, others: readonly LabelledRun[]): void {
  const own = snapshotsOf(run);
  for (const { run: other } of others) {
    const theirs = snapshotsOf(other);
    const [fewer, more] = own.size < theirs.size ? [own, theirs] : [theirs, own];
    if (![...fewer].every((one) => more.has(one))) continue;
    throw new PeriodicEvalError({
      code: "config",
      where: "runs",
      got: `${other.runDir} and ${run.runDir}, of which one is a copy of the other, or went on from it: all snapshots of one are in the other`,
      expected: "each run once: one run counted twice would narrow the intervals",
      fix: "Leave one of the two out; a run of another seed is trained by itself.",
    });
  }
}

const snapshotsOf = ({ phases }: RunRecord): ReadonlySet<string> =>
  new Set(phases.flatMap(({ snapshots }) => snapshots.map((one) => hashJson(one as unknown as Json))));

/** A name that is a folder with snapshots is that folder, though there be a `=` in it (`runs/lr=1e-4`). */
async function readLabelled(name: string): Promise<LabelledRun> {
  const whole = await readRun(name);
  const at = name.indexOf("=");
  if (at === -1 || whole.phases.length > 0) return { run: whole, condition: null };
  return { run: await readRun(name.slice(at + 1)), condition: name.slice(0, at) };
}
