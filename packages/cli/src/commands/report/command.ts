import type { Command } from "commander";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { isRunFolder, metricsFile } from "../../run/metrics-file.ts";
import { flagsOf, nameList } from "../../config/command-options.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface ReportOptions {
  readonly page?: string;
  readonly against?: string;
  readonly method?: readonly string[];
  readonly baseline?: string;
  readonly json: boolean;
}

/** `report`: writes the page of a run (finished, running or interrupted), of training on feedback, or of suite results. */
export function addReport(program: Command, terminal: Terminal): void {
  program
    .command("report")
    .description(
      "write the page of a run, of training on feedback, or of suite results, and print its tables",
    )
    .argument(
      "<folder>",
      "a run's folder, the output_dir of feedback, or a folder with metrics.json (or that file)",
    )
    .option(
      "--page <file>",
      "file of the page (default: <run-dir>/periodic_eval/index.html, or index.html in <output_dir> or <results>)",
    )
    .option("--against <name>", "for results: the run to compare the others with (default: the first)")
    .option(
      "--method <names>",
      "for results: methods of the table of methods, separated by commas (default: all, if runs name their methods)",
      nameList,
    )
    .option("--baseline <name>", "for results: the method to compare the others with (default: the first)")
    .option("--json", "print one JSON document", false)
    .action(async (folder: string, options: ReportOptions, command: Command) => {
      const file = metricsFile(folder);
      if (file !== null) {
        const { reportResults } = await import("./results.ts");
        return reportResults(file, options, terminal);
      }
      for (const name of ["against", "method", "baseline"] as const)
        if (options[name] !== undefined)
          command.error(
            `error: option '${flagsOf(command, name)}' is for results: a folder with metrics.json`,
          );
      if (existsSync(join(folder, "summary.json")) && !isRunFolder(folder)) {
        const { reportFeedback } = await import("../../run/report-feedback.ts");
        return reportFeedback(folder, options, terminal);
      }
      return report(folder, options, terminal);
    });
}

async function report(runDir: string, options: ReportOptions, terminal: Terminal): Promise<void> {
  const { PeriodicEvalError } = await import("@periodic-eval/core");
  const { readRun } = await import("@periodic-eval/store");
  const { reportRun } = await import("../../run/report-run.ts");
  const { phases, problems } = await readRun(runDir, undefined, { rows: false });
  if (phases.length === 0 && problems.length === 0) {
    throw new PeriodicEvalError({
      code: "data",
      where: runDir,
      got: "no snapshot and no metrics.json",
      expected: "snapshots under periodic_eval/, the summary.json of feedback, or the metrics.json of suites",
      fix: "Pass the folder that was run_dir, output_dir or --results. A training without a periodic_eval block measures nothing.",
    });
  }
  await reportRun(runDir, options, terminal);
}
