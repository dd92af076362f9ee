import { Option, type Command } from "commander";
import type { ComparedMetric, GroupBy } from "./run.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface CompareOptions {
  readonly groupBy: GroupBy;
  readonly metric: readonly string[];
  readonly json: boolean;
}

/** `compare`: several runs, start against end, with intervals over runs. */
export function addCompare(program: Command, terminal: Terminal): void {
  program
    .command("compare")
    .description("compare runs by condition, with intervals over their seeds")
    .argument("<runs...>", "folders of runs, each as condition=folder")
    .addOption(
      new Option("--group-by <what>", "which runs belong together")
        .choices(["condition", "seed", "run"])
        .default("condition"),
    )
    .option(
      "--metric <name>",
      "a metric, again for further ones (default: the primary one of each callback)",
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
  const { groupTables } = await import("./output.ts");
  const compared = compareRuns(await readLabelledRuns(names), groupBy, metric.length === 0 ? null : metric);
  terminal.out(
    json
      ? JSON.stringify({ group_by: groupBy, metrics: compared.map(metricJson) }, null, 2)
      : groupTables(compared, terminal.colours),
  );
}

const metricJson = ({ leftOut, ...metric }: ComparedMetric) => ({ ...metric, left_out: leftOut });
