import { Option, type Command } from "commander";
import { backendOption, engineOption } from "../../config/command-options.ts";
import type { LoadTasks } from "../../config/task-registry.ts";
import { serveFlag, type ServeOption } from "../../run/serve-run.ts";
import type { Terminal } from "../../terminal/terminal.ts";

export interface TrainOptions {
  readonly backend?: string;
  readonly engine?: readonly string[];
  readonly resume?: "auto" | "never";
  readonly serve?: ServeOption;
  readonly json: boolean;
}

/** Options that override a file's value of the same name. */
const overridingOptions = ["resume", "backend"] as const satisfies readonly (keyof TrainOptions)[];

/** `train`: fine-tunes a model in the phases of a file. */
export function addTrain(program: Command, terminal: Terminal, loadTasks: LoadTasks): void {
  program
    .command("train")
    .description("fine-tune a model and measure it live, as a file describes it; run it again to resume")
    .argument(
      "<config>",
      "YAML or JSON: model, run_dir, phases, periodic_eval …; paths are relative to the file",
    )
    .argument(
      "[overrides...]",
      "key=value overrides of the file: phases.0.config.maxSteps=10; paths are relative to the working directory",
    )
    .addOption(backendOption())
    .addOption(
      new Option(
        "--resume <mode>",
        "auto: from the newest checkpoint; never: set checkpoints aside and start over (default: resume of the file)",
      ).choices(["auto", "never"]),
    )
    .option(...serveFlag)
    .addOption(engineOption())
    .option("--json", "print one JSON document", false)
    .action(async (config: string, overrides: readonly string[], options: TrainOptions) => {
      const { train } = await import("./run.ts");
      const named = overridingOptions.filter((name) => options[name] !== undefined);
      const all = [
        ...overrides,
        ...(options.engine
          ? [{ text: `engine.vllm=${JSON.stringify(options.engine)}`, flag: "--engine" }]
          : []),
        ...named.map((name) => ({ text: `${name}=${JSON.stringify(options[name])}`, flag: `--${name}` })),
      ];
      await train(config, all, options, { terminal, loadTasks });
    });
}
