import { readConfigFile, type FlagOverride } from "@periodic-eval/core/config";
import { loadLora, withLora, type CheckpointLM } from "@periodic-eval/models";
import { Option, type Command } from "commander";
import { backendOption, engineOption } from "../../config/command-options.ts";
import { noBlockText } from "../../config/config-file.ts";
import type { LoadTasks } from "../../config/open-grader.ts";
import { checkUndisturbed, fineTune, type FineTuneOptions } from "../../run/fine-tune.ts";
import { reportRun } from "../../run/report-run.ts";
import { serveFlag, type ServeOption, withServedRun } from "../../run/serve-run.ts";
import { type Terminal, progressOnly } from "../../terminal/terminal.ts";
import { openKeptConfig } from "./kept-config.ts";
import { prepareTraining } from "./prepare.ts";
import { parseTrainingFile } from "./training-file.ts";

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

/**
 * Trains the phases that a file describes and prints the report. Run again, it resumes.
 *
 * @param overrides Override the file's values: `phases.0.config.maxSteps=10`.
 * @throws PeriodicEvalError with file and line for every error that shows before weights are loaded. By then only the list of
 *   bad rows has been written. Several errors are an AggregateError.
 */
async function train(
  path: string,
  overrides: readonly (string | FlagOverride)[],
  { json, serve }: Pick<TrainOptions, "json" | "serve">,
  { terminal, loadTasks }: { readonly terminal: Terminal; readonly loadTasks: LoadTasks },
): Promise<void> {
  const progress = json ? progressOnly(terminal) : terminal;
  const file = await readConfigFile(path, overrides);
  const parsed = parseTrainingFile(file);
  const { config } = parsed;
  const { run_dir: runDir, model, backend, seed, resume, lora, adapter } = config;
  const { phases, loggers, tokenizer, server } = await prepareTraining(parsed, progress, loadTasks);
  const hasSaidUnmeasured = config.periodic_eval === undefined;
  if (hasSaidUnmeasured) progress.out(noBlockText(path));
  const { differences, keep } = await openKeptConfig(config);
  for (const difference of differences) progress.err(difference);
  // A phase that begins has passed its trainer's checks. Phases that are already finished do not use the new configuration.
  const onBegin: FineTuneOptions["onBegin"] = ({ alreadyFinished }) =>
    alreadyFinished === true ? undefined : keep();
  const adapt = async (base: CheckpointLM) =>
    adapter === undefined ? withLora(base, { seed: String(seed), ...lora }) : loadLora(base, adapter);
  // The same command with resume=never would start over again.
  const resumeCommand = resume === "never" ? "the same command with resume=auto" : "the same command";
  const results = await withServedRun(runDir, { serve, terminal: progress }, async () =>
    fineTune(
      {
        model,
        runDir,
        seed,
        resume,
        phases,
        loggers,
        onBegin,
        config: config.config,
        resumeCommand,
        tokenizer,
        hasSaidUnmeasured,
        ...(backend !== undefined && { backend }),
        ...((lora ?? adapter) !== undefined && { adapt }),
        ...(server && { measureOn: { server } }),
      },
      progress,
    ),
  ).finally(() => server?.dispose());
  await reportRun(runDir, { json }, terminal);
  checkUndisturbed(results, runDir, resumeCommand);
}
