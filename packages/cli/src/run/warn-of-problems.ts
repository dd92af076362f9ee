import type { PeriodicEvalError, RunRecord } from "@periodic-eval/contracts";
import { dataError } from "@periodic-eval/contracts/options";
import { problemNames } from "@periodic-eval/dashboard";
import type { Terminal } from "../terminal/terminal.ts";

/** Prints the problems of a run's files to the standard error. */
export function warnOfProblems({ runDir, problems }: RunRecord, terminal: Pick<Terminal, "err">): void {
  for (const { file, kind, message } of problems)
    terminal.err(`${runDir}: ${problemNames[kind]}: ${file}: ${message}`);
}

/** Returns the error for a folder without snapshots. */
export const noSnapshot = (folder: string): PeriodicEvalError =>
  dataError(folder, "no snapshot", "snapshots under periodic_eval/", "Name the run_dir of a run.");
