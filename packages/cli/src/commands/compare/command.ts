import { Option, type Command } from "commander";
import { flagsOf, nameList } from "../../config/command-options.ts";
import { metricsFile } from "../../run/metrics-file.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import type { GroupBy } from "./run.ts";

interface CompareOptions {
  readonly groupBy: GroupBy;
  readonly metric: readonly string[];
  readonly method?: readonly string[];
  readonly baseline?: string;
  readonly json: boolean;
}

/**
 * `compare`: compares the start and end of several runs, with intervals over runs; or the methods of suite results, in one table
 * of methods and tasks.
 */
export function addCompare(program: Command, terminal: Terminal): void {
  program
    .command("compare")
    .description(
      "compare runs by condition, with intervals over their seeds, or the methods of a suite's results, paired by document",
    )
    .argument("<runs...>", "folders of runs, each as condition=folder, or folders with metrics.json")
    .addOption(
      new Option("--group-by <key>", "what the runs of a group share")
        .choices(["condition", "seed", "run"])
        .default("condition"),
    )
    .option(
      "--metric <name>",
      "metric to compare; repeatable (default: the primary metric of each callback or task)",
      (name: string, before: readonly string[]) => [...before, name],
      [],
    )
    .option(
      "--method <names>",
      "for results: the methods to compare, separated by commas: labels of eval --method, or names of runs without one (default: all)",
      nameList,
    )
    .option("--baseline <name>", "for results: the method to compare the others with (default: the first)")
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
      return compare(names, options, terminal);
    });
}

async function compareResults(
  files: readonly string[],
  { metric, method, baseline, json }: CompareOptions,
  command: Command,
  terminal: Terminal,
): Promise<void> {
  if (command.getOptionValueSource("groupBy") === "cli")
    command.error("error: option '--group-by <key>' is for runs: results are compared by method");
  const { compareMethods } = await import("./methods.ts");
  const metrics = metric.length === 0 ? undefined : metric;
  terminal.out(
    await compareMethods(files, { methods: method, baseline, metrics, json, colours: terminal.colours }),
  );
}

async function compare(
  names: readonly string[],
  { groupBy, metric, json }: CompareOptions,
  terminal: Terminal,
): Promise<void> {
  const { readLabelledRuns } = await import("../../run/labelled-runs.ts");
  const { compareRuns } = await import("./run.ts");
  const { comparisonJson, comparisonTables } = await import("./output.ts");
  const compared = compareRuns(
    await readLabelledRuns(names, terminal),
    groupBy,
    metric.length === 0 ? null : metric,
  );
  terminal.out(json ? comparisonJson(compared, groupBy) : comparisonTables(compared, terminal.colours));
}
