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
    .description("measure the checkpoints that another trainer writes; run it again to resume")
    .argument("<checkpoints>", "folder of checkpoint-N or step_N: full models or adapters")
    .requiredOption("--base <model>", "the model that training began with, measured as step 0")
    .requiredOption("--run-dir <folder>", "folder of snapshots and the page")
    .option("--config <file>", "file with a periodic_eval block (default: capability)")
    .option("--follow", "wait for checkpoints until training has finished", false)
    .addOption(
      new Option("--order <order>", "latest: always the newest, to keep pace")
        .choices(["all", "latest"])
        .default("all"),
    )
    .option("--pattern <name>", "names of checkpoints, such as global_step_{step}/actor")
    .option("--phase <name>", "name of this training (default: the file's, or train)")
    .option("--tokenizer <folder>", "the tokenizer to use (default: the checkpoints')")
    .addOption(engineOption().conflicts("backend"))
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action(async (checkpoints: string, options: WatchCommandOptions) => {
      await watch(checkpoints, options, { terminal, loadTasks });
    });
}
