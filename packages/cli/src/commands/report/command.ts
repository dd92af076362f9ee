import type { Command } from "commander";
import { isFeedbackFolder, metricsFileAt } from "./metrics-file-at.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface ReportOptions {
  readonly page?: string;
  readonly against?: string;
  readonly json: boolean;
}

/** `report`: the page and the tables of a run, finished, running or dead, of training on feedback, or of the results of suites. */
export function addReport(program: Command, terminal: Terminal): void {
  program
    .command("report")
    .description(
      "write the page of a run, of training on feedback, or of results of suites, and print its tables",
    )
    .argument(
      "<folder>",
      "a run's folder; the output_dir of feedback; or results: a folder with metrics.json, or that file",
    )
    .option(
      "--page <file>",
      "where the page goes (default: <run-dir>/periodic_eval/index.html, index.html in <output_dir> or <results>)",
    )
    .option("--against <name>", "of results: the run that the others are compared with (default: the first)")
    .option("--json", "print one JSON document", false)
    .action(async (folder: string, options: ReportOptions, command: Command) => {
      const file = metricsFileAt(folder);
      if (file !== null) {
        const { reportResults } = await import("./results.ts");
        return reportResults(file, options, terminal);
      }
      if (options.against !== undefined)
        command.error("error: option '--against <name>' is for results: a folder with metrics.json");
      if (isFeedbackFolder(folder)) {
        const { reportFeedback } = await import("../feedback/report.ts");
        return reportFeedback(folder, options, terminal);
      }
      return report(folder, options, terminal);
    });
}

async function report(runDir: string, options: ReportOptions, terminal: Terminal): Promise<void> {
  const { PeriodicEvalError } = await import("@periodic-eval/core");
  const { readRun } = await import("@periodic-eval/core/snapshots");
  const { reportRun } = await import("../../run/report-run.ts");
  const { phases, problems } = await readRun(runDir);
  if (phases.length === 0 && problems.length === 0) {
    throw new PeriodicEvalError({
      code: "data",
      where: runDir,
      got: "no snapshot and no metrics.json",
      expected: "snapshots under periodic_eval/, the summary.json of feedback, or the metrics.json of suites",
      fix: "Name the folder that was given as run_dir, as output_dir, or as --results.",
    });
  }
  await reportRun(runDir, options, terminal);
}
