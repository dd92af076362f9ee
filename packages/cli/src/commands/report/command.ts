import { existsSync } from "node:fs";
import { join, dirname, resolve } from "node:path";
import { didYouMean, quoteValue } from "@periodic-eval/contracts/options";
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
import { inVerdictColour, methodsTable } from "../../run/methods-table.ts";
import { isRunFolder, metricsFile, readResults } from "../../run/read-runs.ts";
import { pageLine, reportFeedback, reportRun } from "../../run/report-run.ts";
import { serveAddress, serveFolder, type ServeOption } from "../../run/serve-run.ts";
import { jsonText, plainTable, type Terminal, type Colours } from "../../terminal/terminal.ts";

interface ReportOptions {
  readonly page?: string;
  readonly baseline?: string;
  readonly serve?: ServeOption;
  readonly json: boolean;
}

const help = `
--serve shows all runs below the folder, also running ones. At an address such
as 0.0.0.0:8010 others can read them, unless PERIODIC_EVAL_TOKEN has a token.`;

/** `report`: writes the page of a run (finished, running or interrupted), of training on feedback, or of suite results. */
export function addReport(program: Command, terminal: Terminal): void {
  program
    .command("report")
    .description("write the page of a run and print its tables, or show the runs below a folder")
    .argument("<folder>", "run_dir of a run, output_dir of feedback, or results (metrics.json)")
    .option("--page <file>", "file of the page (default: in the folder)")
    .option("--baseline <name>", "of results: compare with this run or method")
    .option(
      "--serve [address]",
      "show the folder's runs in the browser at [host:]port (default: 8010)",
      serveAddress,
    )
    .option("--json", "print one JSON document", false)
    .addHelpText("after", help)
    .action(async (folder: string, options: ReportOptions, command: Command) => {
      if (options.serve !== undefined) return serveFolder(folder, options.serve, terminal);
      const file = metricsFile(folder);
      if (file !== null) {
        return reportResults(file, options, terminal);
      }
      if (options.baseline !== undefined)
        command.error("error: option '--baseline <name>' is for results: a folder with metrics.json");
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

/** Writes the page of a `metrics.json`, then prints a table per task and the page's path, or with `json` one JSON document. */
async function reportResults(
  file: string,
  { json, page = join(dirname(file), "index.html"), baseline }: ReportOptions,
  terminal: Terminal,
): Promise<void> {
  const { runs, samples } = await readResults(file);
  const reference = referenceOf(runs, baseline, file);
  const summary = summarizeResults(runs, reference, samples);
  const { method, name } = runs[reference] ?? {};
  const methods = hasMethods(runs) ? summarizeMethods(runs, samples, { baseline: method ?? name }) : null;
  await writeFileAtomic(page, renderResults(summary, file, methods));
  if (json) return terminal.out(resultsJson(summary, methods, file, resolve(page)));
  const tables = [
    ...(methods === null ? [] : [methodsTable(methods, terminal.colours)]),
    resultsTables(summary, terminal.colours),
  ];
  terminal.out(`\n${tables.join("\n\n")}\n`);
  terminal.out(pageLine(resolve(page)));
}

/** Returns the index of the run of this name or method; the last of several. */
function referenceOf(runs: ResultsSummary["runs"], name: string | undefined, file: string): number {
  if (name === undefined) return 0;
  const at = runs.findLastIndex((run) => run.name === name || run.method === name);
  if (at !== -1) return at;
  const names = [...new Set(runs.flatMap((run) => [run.name, ...(run.method === null ? [] : [run.method])]))];
  throw new PeriodicEvalError({
    code: "config",
    where: "--baseline",
    got: quoteValue(name),
    expected: names.join(", ") || `a run of ${file}, which is still empty`,
    fix: didYouMean(name, names) ?? "Name one of these.",
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
  const unpaired = paired === all ? "" : `, ${all - paired} of ${all} for two independent samples`;
  return `Changes are computed over pairs of answers to the same question${unpaired}`;
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
