import { Option, type Command } from "commander";
import {
  backendOption,
  modelOption,
  positiveNumber,
  positiveOrNone,
  subsampleSeedOption,
  wholeNumber,
} from "../../config/command-options.ts";
import type { LoadTasks } from "../../config/task-registry.ts";
import { beside, type Terminal } from "../../terminal/terminal.ts";

/** Wanted where no file describes the training. */
interface Wanted {
  readonly model: string;
  readonly data: string;
  readonly questions: string;
  readonly runDir: string;
}

interface TrainOptions extends Wanted {
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
  readonly json: boolean;
}

/** `train`: fine-tuning of any model: phases as a file describes them, or one phase with capability measured live. */
export function addTrain(program: Command, terminal: Terminal, loadTasks: LoadTasks): void {
  program
    .command("train")
    .description(
      "fine-tune a model, measured live: as a file describes it, or one phase by options; run again to resume",
    )
    .argument(
      "[config]",
      "YAML or JSON: model, run_dir, phases, periodic_eval …; all but --json stands there; paths are relative to the file",
    )
    .argument(
      "[overrides...]",
      "key=value over the file's, as phases.0.config.maxSteps=10; paths are relative to the working folder",
    )
    .addOption(modelOption().makeOptionMandatory(false))
    .option("--data <file>", "conversations, JSONL")
    .option("--questions <file>", "ARC-format questions, JSONL")
    .option("--run-dir <folder>", "where snapshots and checkpoints go")
    .option("--phase <name>", "name of this training in the run", "train")
    .addOption(
      new Option("--method <name>", "how questions are asked")
        .choices(["letters", "cloze"])
        .default("letters"),
    )
    .option("--limit <number>", "questions a measurement asks", wholeNumber(1), 200)
    .addOption(subsampleSeedOption())
    .option("--every <percent>", "measure every so many percent", positiveNumber, 20)
    .option(
      "--overhead-percent <percent>",
      "most that measuring adds to the time of training, or none: looks shrink or are skipped to keep it",
      positiveOrNone,
      20,
    )
    .option("--steps <number>", "optimizer steps, in place of epochs", wholeNumber(1))
    .option("--epochs <number>", "passes over the data", positiveNumber)
    .option("--batch-size <number>", "rows a step", wholeNumber(1), 8)
    .option(
      "--learning-rate <number>",
      "of the first step; falls in a straight line to 0",
      positiveNumber,
      5e-5,
    )
    .option("--max-length <tokens>", "longest row (default: what the model takes)", wholeNumber(2))
    .option("--save-steps <number>", "a checkpoint every so many steps (default: at the end)", wholeNumber(1))
    .option("--seed <number>", "of shuffling and measuring", wholeNumber(0), 42)
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action(
      (config: string | undefined, overrides: readonly string[], options: TrainOptions, command: Command) => {
        if (config === undefined) {
          for (const name of wanted)
            if (options[name] === undefined)
              command.error(`error: required option '${flagOf(command, name)}' not specified, nor a CONFIG`);
          return train(options, terminal);
        }
        const given = Object.keys(options).find(
          (name) => name !== "json" && command.getOptionValueSource(name) === "cli",
        );
        if (given !== undefined)
          command.error(
            `error: option '${flagOf(command, given)}' beside a CONFIG: write it there, or as key=value`,
          );
        return trainAsDescribed([config, overrides], options.json, { terminal, loadTasks });
      },
    );
}

const wanted = ["model", "data", "questions", "runDir"] as const satisfies readonly (keyof Wanted)[];

const flagOf = (command: Command, name: string): string =>
  command.options.find((option) => option.attributeName() === name)!.flags;

async function trainAsDescribed(
  [path, overrides]: readonly [string, readonly string[]],
  json: boolean,
  { terminal, loadTasks }: { readonly terminal: Terminal; readonly loadTasks: LoadTasks },
): Promise<void> {
  const { checkUndisturbed } = await import("../../run/fine-tune.ts");
  const { reportRun } = await import("../../run/report-run.ts");
  const { trainFromConfig } = await import("./run.ts");
  const { runDir, results, again } = await trainFromConfig(
    path,
    overrides,
    json ? beside(terminal) : terminal,
    loadTasks,
  );
  await reportRun(runDir, { json }, terminal);
  checkUndisturbed(results, runDir, again);
}

async function train(options: TrainOptions, terminal: Terminal): Promise<void> {
  const { everyPercent, PeriodicCapabilityCallback } = await import("@periodic-eval/core");
  const { checkUndisturbed, fineTune } = await import("../../run/fine-tune.ts");
  const { reportRun } = await import("../../run/report-run.ts");
  const { json, runDir, backend, phase, data, steps, epochs, batchSize, learningRate, maxLength, saveSteps } =
    options;
  const progress = json ? beside(terminal) : terminal;
  const config = {
    batchSize,
    learningRate,
    maxSteps: steps ?? null,
    epochs: epochs ?? null,
    maxLength: maxLength ?? null,
    saveSteps: saveSteps ?? null,
  };
  const capability = new PeriodicCapabilityCallback({
    questions: options.questions,
    method: options.method,
    subsample: { n: options.limit, seed: options.subsampleSeed },
    schedule: [everyPercent(options.every)],
  });
  const results = await fineTune(
    {
      model: options.model,
      seed: options.seed,
      overheadPercent: options.overheadPercent === "none" ? null : options.overheadPercent,
      runDir,
      ...(backend !== undefined && { backend }),
      phases: [{ phase, dataset: data, config, callbacks: [capability] }],
    },
    progress,
  );
  await reportRun(runDir, { json }, terminal);
  checkUndisturbed(results, runDir);
}
