import type { RunRecord } from "@periodic-eval/contracts";
import { problemNames } from "@periodic-eval/dashboard";
import type { Terminal } from "../terminal/terminal.ts";

/** Prints the problems of a run's files to the standard error. */
export function warnOfProblems({ runDir, problems }: RunRecord, terminal: Pick<Terminal, "err">): void {
  for (const { file, kind, message } of problems)
    terminal.err(`${runDir}: ${problemNames[kind]}: ${file}: ${message}`);
}
