import { existsSync, statSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { join, dirname } from "node:path";
import type { RunRecord } from "@periodic-eval/contracts";
import { dataError } from "@periodic-eval/contracts/options";
import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { readConfigFile } from "@periodic-eval/data/config";
import { notFinished, problemNames } from "@periodic-eval/dashboard";
import type { ReadResults } from "@periodic-eval/dashboard/server";
import { readRun, type FileReader } from "@periodic-eval/store";
import { readMetrics, readSamples, type RunSamples } from "@periodic-eval/tasks";
import type { Terminal } from "../terminal/terminal.ts";

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

/** Returns a path's `metrics.json`: the file itself, or the file in a folder that is not a run's. Null if there is none. */
export function metricsFile(path: string): string | null {
  if (existsSync(path) && statSync(path).isFile()) return path;
  const file = join(path, "metrics.json");
  return existsSync(file) && !isRunFolder(path) ? file : null;
}

export const isRunFolder = (path: string): boolean => existsSync(join(path, "periodic_eval"));

/**
 * Reads the runs of a `metrics.json` and their samples in the same folder.
 *
 * @param fs May refuse samples that exceed its limits. Their run then has no samples, and changes are computed as for
 *   independent samples.
 * @throws PeriodicEvalError `store` if the file is missing or damaged.
 */
export async function readResults(file: string, fs?: FileReader): Promise<ReadResults> {
  const unlessOverLimit = (error: unknown): RunSamples => {
    // An error with a cause is a failure to read, not a refusal.
    const isRefusal = PeriodicEvalError.is(error, "store") && error.cause === undefined;
    if (fs === undefined || !isRefusal) throw error;
    return new Map();
  };
  const { runs } = await readMetrics(file, fs);
  const samples: RunSamples[] = [];
  // One run at a time: a run's MMLU samples are 100 MB of JSON.
  for (const run of runs) samples.push(await readSamples(dirname(file), run, fs).catch(unlessOverLimit));
  return { runs, samples };
}

/** Prints the problems of a run's files to the standard error. */
export function warnOfProblems({ runDir, problems }: RunRecord, terminal: Pick<Terminal, "err">): void {
  for (const { file, kind, message } of problems)
    terminal.err(`${runDir}: ${problemNames[kind]}: ${file}: ${message}`);
}

/** Returns the error for a folder without snapshots. */
export const noSnapshot = (folder: string): PeriodicEvalError =>
  dataError(folder, "no snapshot", "snapshots under periodic_eval/", "Name the run_dir of a run.");
