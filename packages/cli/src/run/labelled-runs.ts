import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { readConfigFile } from "@periodic-eval/core/config";
import { readRun } from "@periodic-eval/store";
import { type RunRecord } from "@periodic-eval/contracts";
import { notFinished } from "@periodic-eval/dashboard";
import type { Terminal } from "../terminal/terminal.ts";
import { noSnapshot, warnOfProblems } from "./warn-of-problems.ts";

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
 * @throws PeriodicEvalError `data` for a folder without snapshots; `config` for a run that is named twice.
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
    if (run.phases.length === 0) throw noSnapshot(folder);
    const realFolder = await realpath(folder);
    if (seen.has(realFolder)) {
      throw new PeriodicEvalError({
        code: "config",
        where: "runs",
        got: `${folder} twice`,
        expected: "each run once",
        fix: "Remove the second one.",
      });
    }
    seen.add(realFolder);
    runs.push({ run, condition, config });
  }
  return runs;
}

/** A name that is itself a folder with snapshots is that folder, even with a `=` in it (`runs/lr=1e-4`). */
async function readLabelled(name: string): Promise<Omit<LabelledRun, "config">> {
  const whole = await readRun(name);
  const at = name.indexOf("=");
  if (at === -1 || whole.phases.length > 0) return { run: whole, condition: null };
  return { run: await readRun(name.slice(at + 1)), condition: name.slice(0, at) };
}
