import { readRun } from "@periodic-eval/core/snapshots";
import { phaseData, writePage } from "@periodic-eval/dashboard";
import type { Terminal } from "../terminal/terminal.ts";
import { phaseTables } from "./phase-tables.ts";

/** Writes a run's page, then prints a table per phase and the page's path, or with `json` one JSON document. */
export async function reportRun(
  runDir: string,
  { json, page }: { readonly json: boolean; readonly page?: string },
  terminal: Terminal,
): Promise<void> {
  const path = await writePage(runDir, page);
  const run = await readRun(runDir);
  const incomplete = run.phases
    .flatMap(({ snapshots }) => snapshots)
    .filter(({ status }) => status !== "complete")
    .map(({ phase, id, step, status, reason }) => ({ phase, id, step, status, reason }));
  if (!json) {
    terminal.out(`\n${phaseTables(run, terminal.colours)}\n`);
    for (const { phase, id, step, status, reason } of incomplete)
      terminal.out(`${phase} step ${step}: ${id} ${status}${reason === null ? "" : `: ${reason}`}`);
    for (const { file, message } of run.problems) terminal.out(`not used: ${file}: ${message}`);
    terminal.out(path);
    return;
  }
  const phases = phaseData(run);
  const { problems } = run;
  terminal.out(JSON.stringify({ run_dir: runDir, page: path, phases, incomplete, problems }, null, 2));
}
