import { methodsData, summarizeMethods, type MethodsOptions } from "@periodic-eval/dashboard";
import type { ReadResults } from "@periodic-eval/dashboard/server";
import { checkDocuments, checkSuite, readMetrics, type MetricsRun } from "@periodic-eval/tasks";
import { methodFlags, methodsTable } from "../../run/methods-table.ts";
import { readResults } from "../../run/read-results.ts";
import type { Colours } from "../../terminal/terminal.ts";

interface CompareMethodsOptions extends Omit<MethodsOptions, "where"> {
  readonly json: boolean;
  readonly colours: Colours;
}

/**
 * Compares the methods in one or several `metrics.json` of one suite; returns a table, or JSON.
 *
 * @throws PeriodicEvalError `config` for an unknown label or metric; `store` for a damaged file, or runs of different suites or documents.
 */
export async function compareMethods(
  files: readonly string[],
  { json, colours, ...options }: CompareMethodsOptions,
): Promise<string> {
  const compared = options.methods && [...options.methods, ...(options.baseline ? [options.baseline] : [])];
  const { runs, samples } = await readAll([...new Set(files)], compared);
  const summary = summarizeMethods(runs, samples, { ...options, where: methodFlags });
  if (!json) return methodsTable(summary, colours);
  return JSON.stringify({ metrics_files: files, ...methodsData(summary, runs) }, null, 2);
}

/** @param methods The methods whose documents must agree. Default: all. */
async function readAll(
  files: readonly string[],
  methods: readonly string[] | undefined,
): Promise<ReadResults> {
  const [first, ...others] = await Promise.all(
    files.map(async (path) => ({ path, runs: (await readMetrics(path)).runs })),
  );
  const all = [first!, ...others];
  for (const { runs } of others)
    for (const run of runs) checkSuite(first!.path, { schema_version: 1, runs: first!.runs }, run);
  const isCompared = ({ method, name }: MetricsRun) => methods?.includes(method ?? name) ?? true;
  await checkDocuments(all.map(({ path, runs }) => ({ path, runs: runs.filter(isCompared) })));
  const read: ReadResults[] = [];
  for (const file of files) read.push(await readResults(file));
  return {
    runs: read.flatMap(({ runs }) => runs),
    samples: read.flatMap(({ samples }) => samples),
  };
}
