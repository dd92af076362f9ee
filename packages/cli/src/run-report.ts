import { readRun } from "@periodic-eval/core/snapshots";
import { summarizePhases, writePage } from "@periodic-eval/dashboard";
import { phaseTables } from "./tables.ts";
import type { Terminal } from "./terminal.ts";

/** Writes the page of a run and tells its path, after a table per phase; with `json` as one document. */
export async function reportRun(
  runDir: string,
  { json, page }: { readonly json: boolean; readonly page?: string },
  terminal: Terminal,
): Promise<void> {
  const path = await writePage(runDir, page);
  const run = await readRun(runDir);
  if (!json) {
    terminal.out(`\n${phaseTables(run, terminal.colours)}\n`);
    for (const { file, message } of run.problems) terminal.out(`not used: ${file}: ${message}`);
    terminal.out(path);
    return;
  }
  const phases = summarizePhases(run).map(({ phase, metrics }) => ({
    name: phase.name,
    max_steps: phase.maxSteps,
    snapshots: phase.snapshots.length,
    evaluation_seconds: phase.evaluationSeconds,
    overhead_percent: phase.overheadPercent,
    metrics: metrics.map(({ id, metric, unit, isPrimary, start, end, change }) => ({
      id,
      metric,
      unit,
      primary: isPrimary,
      start: start.value,
      end: end.value,
      delta: change?.delta ?? null,
      ci95: change?.ci95 ?? null,
      p_value: change?.p_value ?? null,
      verdict: change?.verdict ?? null,
    })),
  }));
  terminal.out(JSON.stringify({ run_dir: runDir, page: path, phases, problems: run.problems }, null, 2));
}
