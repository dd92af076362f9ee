import { methodsData, summarizeMethods, type MethodsOptions } from "@periodic-eval/dashboard";
import type { ReadResults } from "@periodic-eval/dashboard/server";
import { csvLine, tidyColumns, tidyRows } from "@periodic-eval/store";
import { checkDocuments, checkSuite, readMetrics, type MetricsRun } from "@periodic-eval/tasks";
import type { Command } from "commander";
import { flagsOf, nameList } from "../../config/command-options.ts";
import { methodFlags, methodsTable } from "../../run/methods-table.ts";
import { type LabelledRun, metricsFile, readResults, readLabelledRuns } from "../../run/read-runs.ts";
import { jsonText, type Terminal, type Colours } from "../../terminal/terminal.ts";
import { comparisonJson, comparisonTables, compareRuns } from "./run.ts";

interface CompareOptions {
  readonly metric: readonly string[];
  readonly method?: readonly string[];
  readonly baseline?: string;
  readonly csv: boolean;
  readonly json: boolean;
}

/**
 * `compare`: compares the start and end of several runs, with intervals over runs; or the methods of suite results, in one table
 * of methods and tasks.
 */
export function addCompare(program: Command, terminal: Terminal): void {
  program
    .command("compare")
    .description("compare runs by condition, with intervals over seeds, or the methods of results")
    .argument("<runs...>", "runs, those of one group as NAME=folder; or results (metrics.json)")
    .option(
      "--metric <name>",
      "a metric; repeatable (default: the primary ones)",
      (name: string, before: readonly string[]) => [...before, name],
      [],
    )
    .option("--method <names>", "methods of results, by commas (default: all)", nameList)
    .option("--baseline <name>", "of results: compare with this method (default: the first)")
    .option("--csv", "print all metrics of all measurements of runs as CSV", false)
    .option("--json", "print one JSON document", false)
    .action(async (names: readonly string[], options: CompareOptions, command: Command) => {
      const files = names.flatMap((name) => metricsFile(name) ?? []);
      if (files.length === names.length) return compareResults(files, options, command, terminal);
      for (const option of ["method", "baseline"] as const)
        if (options[option] !== undefined)
          command.error(
            `error: option '${flagsOf(command, option)}' is for results: ${names.find((name) => metricsFile(name) === null)} has no metrics.json`,
          );
      if (files.length > 0)
        command.error(`error: got runs and results (${files.join(", ")}), expected only one of the two`);
      const runs = await readLabelledRuns(names, terminal);
      return options.csv ? terminal.out(runsCsv(runs)) : compare(runs, options, terminal);
    });
}

/** Returns a row per value (RFC 4180): every metric of every measurement. Null is an empty field. */
const runsCsv = (runs: readonly LabelledRun[]): string =>
  [
    csvLine(tidyColumns),
    ...runs
      .flatMap(({ run, condition }) => tidyRows(run, condition))
      .map((row) => csvLine(tidyColumns.map((column) => row[column]))),
  ].join("\r\n");

async function compareResults(
  files: readonly string[],
  { metric, method, baseline, csv, json }: CompareOptions,
  command: Command,
  terminal: Terminal,
): Promise<void> {
  if (csv) command.error("error: option '--csv' is for runs: metrics.json holds the values of results");
  const metrics = metric.length === 0 ? undefined : metric;
  terminal.out(
    await compareMethods(files, { methods: method, baseline, metrics, json, colours: terminal.colours }),
  );
}

function compare(runs: readonly LabelledRun[], { metric, json }: CompareOptions, terminal: Terminal): void {
  const compared = compareRuns(runs, metric.length === 0 ? null : metric);
  terminal.out(json ? comparisonJson(compared) : comparisonTables(compared, terminal.colours));
}

interface CompareMethodsOptions extends Omit<MethodsOptions, "where"> {
  readonly json: boolean;
  readonly colours: Colours;
}

/**
 * Compares the methods in one or several `metrics.json` of one suite; returns a table, or JSON.
 *
 * @throws PeriodicEvalError `config` for an unknown label or metric; `store` for a damaged file, or runs of different suites or documents.
 */
async function compareMethods(
  files: readonly string[],
  { json, colours, ...options }: CompareMethodsOptions,
): Promise<string> {
  const compared = options.methods && [...options.methods, ...(options.baseline ? [options.baseline] : [])];
  const { runs, samples } = await readAll([...new Set(files)], compared);
  const summary = summarizeMethods(runs, samples, { ...options, where: methodFlags });
  if (!json) return methodsTable(summary, colours);
  return jsonText({ metrics_files: files, ...methodsData(summary, runs) });
}

/** @param methods The methods whose documents must agree. Default: all. */
async function readAll(
  files: readonly string[],
  methods: readonly string[] | undefined,
): Promise<ReadResults> {
  const [first, ...rest] = await Promise.all(
    files.map(async (path) => ({ path, runs: (await readMetrics(path)).runs })),
  );
  const all = [first!, ...rest];
  for (const { runs } of rest)
    for (const run of runs) checkSuite(first!.path, { schema_version: 1, runs: first!.runs }, run);
  const isCompared = ({ method, name }: MetricsRun) => methods?.includes(method ?? name) ?? true;
  checkDocuments(all.map(({ path, runs }) => ({ path, runs: runs.filter(isCompared) })));
  const read: ReadResults[] = [];
  for (const file of files) read.push(await readResults(file));
  return {
    runs: read.flatMap(({ runs }) => runs),
    samples: read.flatMap(({ samples }) => samples),
  };
}
