import type { RunRecord } from "@periodic-eval/core/snapshots";
import { problemNames } from "@periodic-eval/dashboard";
import type { Terminal } from "../terminal/terminal.ts";

/** Prints what is damaged, edited or missing in a run to the standard error. */
export function warnOfProblems({ runDir, problems }: RunRecord, terminal: Pick<Terminal, "err">): void {
  for (const { file, kind, message } of problems)
    terminal.err(`${runDir}: ${problemNames[kind]}: ${file}: ${message}`);
}
