import type { Command } from "commander";
import type { Terminal } from "../terminal.ts";

interface ReportOptions {
  readonly page?: string;
  readonly json: boolean;
}

/** `report`: the page and the tables of a run, finished, running or dead. */
export function addReport(program: Command, terminal: Terminal): void {
  program
    .command("report")
    .description("write the page of a run and print its tables")
    .argument("<run-dir>", "the run's folder")
    .option("--page <file>", "where the page goes (default: <run-dir>/periodic_eval/index.html)")
    .option("--json", "print one JSON document", false)
    .action(async (runDir: string, options: ReportOptions) => {
      const { PeriodicEvalError } = await import("@periodic-eval/core");
      const { readRun } = await import("@periodic-eval/core/snapshots");
      const { reportRun } = await import("../run-report.ts");
      const { phases, problems } = await readRun(runDir);
      if (phases.length === 0 && problems.length === 0) {
        const fix = "Name the folder that was given as run_dir.";
        throw new PeriodicEvalError({
          code: "data",
          where: runDir,
          got: "no snapshot",
          expected: "snapshots under periodic_eval/",
          fix,
        });
      }
      await reportRun(runDir, options, terminal);
    });
}
