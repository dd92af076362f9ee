import { existsSync } from "node:fs";
import { join, dirname, resolve } from "node:path";
import { quoteValue } from "@periodic-eval/contracts/options";
import { PeriodicEvalError } from "@periodic-eval/core";
import {
  changeGlyph,
  formatScore,
  formatScoreChange,
  hasMethods,
  methodsData,
  metricName,
  renderResults,
  resultsData,
  verdictKey,
  summarizeMethods,
  summarizeResults,
  type MethodsSummary,
  type ResultsMetric,
  type ResultsSummary,
  type ResultsTask,
} from "@periodic-eval/dashboard";
import { writeFileAtomic, readRun } from "@periodic-eval/store";
import type { Command } from "commander";
import { flagsOf, nameList } from "../../config/command-options.ts";
import { inVerdictColour, methodFlags, methodsTable } from "../../run/methods-table.ts";
import { isRunFolder, metricsFile, readResults } from "../../run/read-runs.ts";
import { pageLine, reportFeedback, reportRun } from "../../run/report-run.ts";
import { jsonText, plainTable, type Terminal, type Colours } from "../../terminal/terminal.ts";

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
        return reportResults(file, options, terminal);
      }
      for (const name of ["against", "method", "baseline"] as const)
        if (options[name] !== undefined)
          command.error(
            `error: option '${flagsOf(command, name)}' is for results: a folder with metrics.json`,
          );
      if (existsSync(join(folder, "summary.json")) && !isRunFolder(folder)) {
        return reportFeedback(folder, options, terminal);
      }
      return report(folder, options, terminal);
    });
}

async function report(runDir: string, options: ReportOptions, terminal: Terminal): Promise<void> {
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

interface ResultsReportOptions {
  readonly json: boolean;
  /** Default: `index.html` in the folder of the file. */
  readonly page?: string;
  /** Name of the run that the others are compared with. Default: the first. */
  readonly against?: string;
  /** Labels of the table of methods. Default: all, if a run has a label. */
  readonly method?: readonly string[];
  /** Label of the method that the others are compared with. Default: the first. */
  readonly baseline?: string;
}

/** Writes the page of a `metrics.json`, then prints a table per task and the page's path, or with `json` one JSON document. */
async function reportResults(
  file: string,
  { json, page = join(dirname(file), "index.html"), against, method, baseline }: ResultsReportOptions,
  terminal: Terminal,
): Promise<void> {
  const { runs, samples } = await readResults(file);
  const summary = summarizeResults(runs, referenceOf(runs, against, file), samples);
  const isAsked = method !== undefined || baseline !== undefined;
  const compared = isAsked || hasMethods(runs);
  const methods = compared
    ? summarizeMethods(runs, samples, { methods: method, baseline, where: methodFlags })
    : null;
  await writeFileAtomic(page, renderResults(summary, file, methods));
  if (json) return terminal.out(resultsJson(summary, methods, file, resolve(page)));
  const tables = [
    ...(methods === null ? [] : [methodsTable(methods, terminal.colours)]),
    resultsTables(summary, terminal.colours),
  ];
  terminal.out(`\n${tables.join("\n\n")}\n`);
  terminal.out(pageLine(resolve(page)));
}

/** Returns the index of the run of this name; the last of several. */
function referenceOf(runs: ResultsSummary["runs"], name: string | undefined, file: string): number {
  if (name === undefined) return 0;
  const at = runs.findLastIndex((run) => run.name === name);
  if (at !== -1) return at;
  throw new PeriodicEvalError({
    code: "config",
    where: "--against",
    got: quoteValue(name),
    expected:
      [...new Set(runs.map((run) => run.name))].join(", ") || `a run of ${file}, which is still empty`,
    fix: "Name one of these.",
  });
}

/** Returns a table per task with a row per run, the best first. Groups are only on the page. */
function resultsTables(summary: ResultsSummary, colours: Colours): string {
  if (summary.runs.length === 0) return "No run has finished yet.";
  const tables = summary.tasks.map((task) => taskTable(summary, task, colours));
  const changes = summary.tasks.flatMap(({ metrics }) =>
    metrics.flatMap(({ measured }) => measured.flatMap(({ change }) => change ?? [])),
  );
  const paired = changes.filter(({ pairs }) => pairs !== null).length;
  const note = `${comparisonNote(paired, changes.length)}; ${verdictKey} at 95 %.`;
  return [...tables, ...(summary.reference === null ? [] : [colours.dim(note)])].join("\n\n");
}

function comparisonNote(paired: number, all: number): string {
  if (paired === 0) return "Changes are computed for two independent samples";
  const others = paired === all ? "" : `, ${all - paired} of ${all} for two independent samples`;
  return `Changes are computed over pairs of answers to the same question${others}`;
}

function taskTable({ runs, reference }: ResultsSummary, task: ResultsTask, colours: Colours): string {
  const { name, metrics, groups, order } = task;
  const columns = metrics.flatMap((metric) => [
    metricName(metric),
    "± stderr",
    ...(reference === null ? [] : ["change"]),
  ]);
  const rows = order.map((at) => [
    `${runs[at]!.name}${at === reference ? " (reference)" : ""}`,
    ...metrics.flatMap((metric) => cellsOf(metric, at, reference !== null, colours)),
  ]);
  const more = groups.length === 0 ? "" : `\n${colours.dim(`and ${groups.length} groups: on the page`)}`;
  return `${colours.bold(name)}\n${plainTable([{ words: "run" }, ...columns], rows, colours)}${more}`;
}

function cellsOf(
  { measured }: ResultsMetric,
  at: number,
  isCompared: boolean,
  colours: Colours,
): readonly string[] {
  const { value, stderr, change } = measured[at]!;
  const cells = [formatScore(value), formatScore(stderr)];
  if (!isCompared) return cells;
  if (change === null) return [...cells, ""];
  const text = `${changeGlyph(change.verdict)} ${formatScoreChange(change.delta)}`.trim();
  return [...cells, inVerdictColour(text, change.verdict, colours)];
}

const resultsJson = (
  summary: ResultsSummary,
  methods: MethodsSummary | null,
  file: string,
  page: string,
): string =>
  jsonText({
    metrics_file: file,
    page,
    ...resultsData(summary),
    methods: methods && methodsData(methods, summary.runs),
  });
