import type { WatchCommandOptions } from "./configuration.ts";
import { watch } from "./run.ts";
import { Option, type Command } from "commander";
import { backendOption, engineOption } from "../../config/command-options.ts";
import type { LoadTasks } from "../../config/open-grader.ts";
import type { Terminal } from "../../terminal/terminal.ts";

/** `watch`: measures the checkpoints that another program writes, such as a trainer in Python. */
export function addWatch(program: Command, terminal: Terminal, loadTasks: LoadTasks): void {
  program
    .command("watch")
    .description(
      "measure the checkpoints that another trainer writes, and the base model as step 0; run it again to resume",
    )
    .argument(
      "<checkpoints>",
      "folder with checkpoint-N (transformers, TRL, axolotl) or step_N (ours): full models or adapters",
    )
    .requiredOption("--base <model>", "the model that training began with: a folder, or owner/name")
    .requiredOption("--run-dir <folder>", "folder of snapshots and the page")
    .option(
      "--config <file>",
      "YAML or JSON with a periodic_eval block, such as a training file, whose loggers and seed apply too (default: capability every 20 %, as train)",
    )
    .option("--follow", "wait for further checkpoints until training has finished", false)
    .addOption(
      new Option(
        "--order <order>",
        "all: every checkpoint at which something is to be measured; latest: always the newest, to keep pace",
      )
        .choices(["all", "latest"])
        .default("all"),
    )
    .option(
      "--pattern <name>",
      "other names of checkpoints, with {step}: global_step_{step}/actor/huggingface",
    )
    .option("--phase <name>", "name of this training in the run (default: the file's only phase, or train)")
    .option(
      "--tokenizer <folder>",
      "the tokenizer of all measurements (default: the checkpoints', with --engine the base's)",
    )
    .addOption(engineOption().conflicts("backend"))
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action(async (checkpoints: string, options: WatchCommandOptions) => {
      await watch(checkpoints, options, { terminal, loadTasks });
    });
}
