import { Option, type Command } from "commander";
import type { Terminal } from "../../terminal/terminal.ts";
import type { GroupBy } from "./run.ts";

interface CompareOptions {
  readonly groupBy: GroupBy;
  readonly metric: readonly string[];
  readonly json: boolean;
}

/** `compare`: compares the start and end of several runs, with intervals over runs. */
export function addCompare(program: Command, terminal: Terminal): void {
  program
    .command("compare")
    .description("compare runs by condition, with intervals over their seeds")
    .argument("<runs...>", "folders of runs, each as condition=folder")
    .addOption(
      new Option("--group-by <key>", "what the runs of a group share")
        .choices(["condition", "seed", "run"])
        .default("condition"),
    )
    .option(
      "--metric <name>",
      "metric to compare; repeatable (default: the primary metric of each callback)",
      (name: string, before: readonly string[]) => [...before, name],
      [],
    )
    .option("--json", "print one JSON document", false)
    .action((names: readonly string[], options: CompareOptions) => compare(names, options, terminal));
}

async function compare(
  names: readonly string[],
  { groupBy, metric, json }: CompareOptions,
  terminal: Terminal,
): Promise<void> {
  const { readLabelledRuns } = await import("../../run/labelled-runs.ts");
  const { compareRuns } = await import("./run.ts");
  const { comparisonJson, comparisonTables } = await import("./output.ts");
  const compared = compareRuns(await readLabelledRuns(names), groupBy, metric.length === 0 ? null : metric);
  terminal.out(json ? comparisonJson(compared, groupBy) : comparisonTables(compared, terminal.colours));
}
