import { Option, type Command } from "commander";
import {
  backendOption,
  defaultQuestions,
  engineOption,
  flagsOf,
  integer,
  modelOption,
  positiveNumber,
  positiveNumberOrNone,
  subsampleSeedOption,
} from "../../config/command-options.ts";
import type { LoadTasks } from "../../config/task-registry.ts";
import { serveFlag, type ServeOption } from "../../run/serve-run.ts";
import type { Terminal } from "../../terminal/terminal.ts";

/** Options of a training without a file. */
export interface TrainOptions {
  readonly model: string;
  readonly data: string;
  readonly questions?: string;
  readonly runDir: string;
  readonly phase: string;
  readonly method: "letters" | "cloze";
  readonly limit: number;
  readonly subsampleSeed: number;
  readonly every: number;
  readonly overheadPercent: number | "none";
  readonly steps?: number;
  readonly epochs?: number;
  readonly batchSize: number;
  readonly learningRate: number;
  readonly maxLength?: number;
  readonly saveSteps?: number;
  readonly seed: number;
  readonly backend?: string;
  readonly engine?: readonly string[];
  readonly resume: "auto" | "never";
  readonly serve?: ServeOption;
  readonly json: boolean;
}

/** Options that override a file's value of the same name. */
const overridingOptions = ["resume", "backend"] as const satisfies readonly (keyof TrainOptions)[];

/** Options that are required without a file. */
const required = ["model", "data", "runDir"] as const satisfies readonly (keyof TrainOptions)[];

/** `train`: fine-tunes a model in the phases of a file, or in one phase with capability measured live. */
export function addTrain(program: Command, terminal: Terminal, loadTasks: LoadTasks): void {
  const command = program
    .command("train")
    .description(
      "fine-tune a model and measure it live, from a file or in one phase by options; run it again to resume",
    )
    .argument(
      "[config]",
      "YAML or JSON: model, run_dir, phases, periodic_eval …; replaces all options but --backend, --engine, --resume, --serve and --json; paths are relative to the file",
    )
    .argument(
      "[overrides...]",
      "key=value overrides of the file: phases.0.config.maxSteps=10; paths are relative to the working directory",
    );
  addOnePhaseOptions(command)
    .addOption(
      new Option(
        "--resume <mode>",
        "auto: from the newest checkpoint; never: set checkpoints aside and start over",
      )
        .choices(["auto", "never"])
        .default("auto"),
    )
    .option(...serveFlag)
    .addOption(engineOption())
    .option("--json", "print one JSON document", false)
    .action(
      async (
        config: string | undefined,
        overrides: readonly string[],
        options: TrainOptions,
        self: Command,
      ) => {
        checkOptions(config, options, self);
        const { trainFromFile, trainOnePhase } = await import("./run.ts");
        if (config === undefined) await trainOnePhase(options, terminal);
        else {
          // Without the options, the file decides.
          const given = overridingOptions.filter((name) => self.getOptionValueSource(name) === "cli");
          const engine = options.engine ? [`engine.vllm=${JSON.stringify(options.engine)}`] : [];
          const all = [
            ...overrides,
            ...engine,
            ...given.map((name) => `${name}=${JSON.stringify(options[name])}`),
          ];
          await trainFromFile(config, all, options, { terminal, loadTasks });
        }
      },
    );
}

const addOnePhaseOptions = (command: Command): Command =>
  command
    .addOption(modelOption().makeOptionMandatory(false))
    .option("--data <source>", "rows to train on: a JSON Lines or Parquet file, or hf:owner/dataset")
    .option(
      "--questions <source>",
      `questions in the ARC format: a file, or hf:owner/dataset (default: "${defaultQuestions}", if it can be had)`,
    )
    .option("--run-dir <folder>", "folder of snapshots and checkpoints")
    .option("--phase <name>", "name of this training in the run", "train")
    .addOption(
      new Option("--method <name>", "how questions are posed")
        .choices(["letters", "cloze"])
        .default("letters"),
    )
    .option("--limit <number>", "questions per measurement", integer(1), 200)
    .addOption(subsampleSeedOption())
    .option("--every <percent>", "interval between measurements, in percent of training", positiveNumber, 20)
    .option(
      "--overhead-percent <percent>",
      "ceiling of the time that measuring adds to training, or none; beyond a grace of 60 s, measurements use fewer questions or are spaced more widely to stay below it",
      positiveNumberOrNone,
      20,
    )
    .option("--steps <number>", "optimizer steps; replaces --epochs", integer(1))
    .option("--epochs <number>", "passes over the data", positiveNumber)
    .option("--batch-size <number>", "rows per step", integer(1), 8)
    .option(
      "--learning-rate <number>",
      "learning rate of the first step; it falls linearly to 0",
      positiveNumber,
      5e-5,
    )
    .option("--max-length <tokens>", "longest row (default: the model's context)", integer(2))
    .option("--save-steps <number>", "steps between checkpoints (default: one at the end)", integer(1))
    .option("--seed <number>", "seed of shuffling and measuring", integer(0), 42)
    .addOption(backendOption());

function checkOptions(config: string | undefined, options: TrainOptions, command: Command): void {
  if (config === undefined) {
    const missing = required.find((name) => options[name] === undefined);
    if (missing !== undefined)
      command.error(
        `error: required option '${flagsOf(command, missing)}' not specified, and no CONFIG given`,
      );
    if (options.engine !== undefined)
      command.error(
        `error: option '${flagsOf(command, "engine")}' needs a CONFIG with lora: a running server can load adapters, not all weights`,
      );
    return;
  }
  const given = Object.keys(options).find(
    (name) =>
      !["json", "serve", "engine", ...overridingOptions].includes(name) &&
      command.getOptionValueSource(name) === "cli",
  );
  if (given !== undefined)
    command.error(
      `error: option '${flagsOf(command, given)}' cannot be combined with a CONFIG: set it in the file or as key=value`,
    );
}
