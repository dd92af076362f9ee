import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { readConfigFile } from "@periodic-eval/core/config";
import { hashJson } from "@periodic-eval/core/random";
import { readRun } from "@periodic-eval/store";
import { type RunRecord } from "@periodic-eval/contracts";
import { notFinished } from "@periodic-eval/dashboard";
import type { Terminal } from "../terminal/terminal.ts";
import { warnOfProblems } from "./warn-of-problems.ts";

/** A run and its condition in a comparison. */
export interface LabelledRun {
  readonly run: RunRecord;
  /** Null if the command line names none. */
  readonly condition: string | null;
  /** The training file that `train` recorded; null without one. */
  readonly config: Json;
}

/**
 * Reads runs named as `folder` or `condition=folder`, and prints the problems of their files to the standard error.
 *
 * @throws PeriodicEvalError `data` for a folder without snapshots; `config` for a run that is named twice or copied from another.
 */
export async function readLabelledRuns(
  names: readonly string[],
  terminal: Pick<Terminal, "err">,
): Promise<readonly LabelledRun[]> {
  const seen = new Set<string>();
  const runs: LabelledRun[] = [];
  for (const name of names) {
    const { run, condition } = await readLabelled(name);
    const config = await readConfigFile(join(run.runDir, "train.yaml")).then(
      ({ value }) => value as Json,
      () => null,
    );
    const folder = run.runDir;
    warnOfProblems(run, terminal);
    const state = notFinished(run);
    if (state !== null) terminal.err(`${folder}: ${state}`);
    if (run.phases.length === 0) {
      throw new PeriodicEvalError({
        code: "data",
        where: folder,
        got: "no snapshot",
        expected: "snapshots under periodic_eval/",
        fix: "Name the run_dir of a run, or condition=run_dir.",
      });
    }
    const realFolder = await realpath(folder);
    if (seen.has(realFolder)) throw countedTwice(`${folder} twice`, "Remove the second one.");
    seen.add(realFolder);
    refuseCopy(run, runs);
    runs.push({ run, condition, config });
  }
  return runs;
}

/**
 * Refuses a run whose snapshots are all contained in another run: one is a copy of the other, or was resumed from a copy. Time,
 * seconds and weights make every measurement unique. Two runs that share a phase but continue differently pass once each has
 * a snapshot that the other lacks.
 */
function refuseCopy(run: RunRecord, others: readonly LabelledRun[]): void {
  const hashes = snapshotHashes(run);
  for (const { run: other } of others) {
    const otherHashes = snapshotHashes(other);
    const [fewer, more] = hashes.size < otherHashes.size ? [hashes, otherHashes] : [otherHashes, hashes];
    if (![...fewer].every((hash) => more.has(hash))) continue;
    throw countedTwice(
      `${other.runDir} and ${run.runDir}, where all snapshots of one are also in the other: one is a copy of the other or was resumed from it`,
      "Remove one of the two. Train a run of another seed from scratch.",
    );
  }
}

const countedTwice = (got: string, fix: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "config",
    where: "runs",
    got,
    expected: "each run once, because counting a run twice would narrow the intervals",
    fix,
  });

const snapshotHashes = ({ phases }: RunRecord): ReadonlySet<string> =>
  new Set(phases.flatMap(({ snapshots }) => snapshots.map((one) => hashJson(one as unknown as Json))));

/** A name that is itself a folder with snapshots is that folder, even with a `=` in it (`runs/lr=1e-4`). */
async function readLabelled(name: string): Promise<Omit<LabelledRun, "config">> {
  const whole = await readRun(name);
  const at = name.indexOf("=");
  if (at === -1 || whole.phases.length > 0) return { run: whole, condition: null };
  return { run: await readRun(name.slice(at + 1)), condition: name.slice(0, at) };
}
