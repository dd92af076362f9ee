import type { JudgePrice } from "@periodic-eval/core/grading";
import { InvalidArgumentError, Option, type Command } from "commander";
import { backendOption, flagsOf } from "../../config/command-options.ts";
import type { LoadTasks } from "../../config/task-registry.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import type { PlannedPhase } from "./plan-block.ts";

export interface PlanOptions {
  /** Default: the phases of a training file. */
  readonly phase?: readonly PlannedPhase[];
  /** True for the model of a training file. */
  readonly model?: string | true;
  /** The model whose tokenizer renders the prompts to print. True for the model of a training file. */
  readonly prompts?: string | true;
  readonly judgePrice?: JudgePrice;
  readonly backend?: string;
  readonly json: boolean;
}

/** `plan`: prints what a configuration will measure and what that costs, before anything runs. */
export function addPlan(program: Command, terminal: Terminal, loadTasks: LoadTasks): void {
  program
    .command("plan")
    .description("print when a configuration measures and what it costs, before anything runs")
    .argument(
      "<config>",
      "a training file, or YAML or JSON with a periodic_eval block; paths are relative to the file",
    )
    .option(
      "--phase <name=steps>",
      "a phase and its optimizer steps, repeated for each phase of the run (default: the phases of a training file)",
      (value: string, before: readonly PlannedPhase[] | undefined) => [...(before ?? []), parsePhase(value)],
    )
    .option(
      "--model [folder]",
      "a model on which to measure a few items, to estimate seconds and tokens (default folder: the training file's model)",
    )
    .addOption(
      new Option(
        "--prompts [folder]",
        "print the first prompt of each evaluation, token by token, as this model reads it; loads no weights (default folder: the training file's model)",
      ).conflicts("model"),
    )
    .option(
      "--judge-price <in,out>",
      "price of a million input and output tokens of the judge (default: judge_price of the configuration)",
      parsePrice,
    )
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action(async (config: string, options: PlanOptions, self: Command) => {
      const { plan } = await import("./run.ts");
      const { planJson, planTables } = await import("./output.ts");
      const planned = await plan(config, options, { terminal, loadTasks });
      if ("missing" in planned)
        self.error(
          `error: required option '${flagsOf(self, planned.missing)}' not specified, and ${config} is not a training file that sets it`,
        );
      if (planned.length === 0 && !options.json) return;
      const price = options.judgePrice ?? null;
      terminal.out(
        options.json ? planJson(planned, config, price) : planTables(planned, price, terminal.colours),
      );
    });
}

function parsePhase(value: string): PlannedPhase {
  const [, name, steps] = /^([A-Za-z0-9][\w.-]*)=(\d+)$/.exec(value) ?? [];
  if (name === undefined || Number(steps) < 1)
    throw new InvalidArgumentError("Expected name=steps, such as em=500.");
  return { name, maxSteps: Number(steps) };
}

function parsePrice(value: string): JudgePrice {
  const [input, output, ...more] = value.split(",").map(Number);
  if (!(input! >= 0) || !(output! >= 0) || more.length > 0)
    throw new InvalidArgumentError("Expected two numbers, such as 3,15.");
  return { inputPerMillion: input!, outputPerMillion: output! };
}
