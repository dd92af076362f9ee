import { shellWord } from "@periodic-eval/contracts/options";
import { readConfigFile, type FlagOverride } from "@periodic-eval/data/config";
import { Option, type Command } from "commander";
import { backendOption, engineOption } from "../../config/command-options.ts";
import { atPlace, isAboutBlock, noBlockText } from "../../config/config-file.ts";
import type { LoadTasks } from "../../config/open-grader.ts";
import { checkUndisturbed, fineTune } from "./fine-tune.ts";
import { reportRun } from "../../run/report-run.ts";
import { serveFlag, type ServeOption, withServedRun } from "../../run/serve-run.ts";
import { CommandFailure, stoppedCode } from "../../terminal/interrupt.ts";
import { type Terminal, progressOnly } from "../../terminal/terminal.ts";
import { openKeptConfig } from "./kept-config.ts";
import { prepareTraining } from "./prepare.ts";
import { writeTemplate } from "./write-template.ts";
import { parseTrainingFile } from "./training-file.ts";

export interface TrainOptions {
  readonly init: boolean;
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
    .description("fine-tune a model and measure it live, as a file describes; run it again to resume")
    .argument("<config>", "YAML or JSON with model, run_dir, phases and periodic_eval")
    .argument("[overrides...]", "key=value in place of the file's: phases.0.config.maxSteps=10")
    .option("--init", "write a commented file to start with, and do not train", false)
    .addOption(backendOption())
    .addOption(
      new Option("--resume <mode>", "auto: continue; never: start over (default: the file's)").choices([
        "auto",
        "never",
      ]),
    )
    .option(...serveFlag)
    .addOption(engineOption())
    .option("--json", "print one JSON document", false)
    .action(async (config: string, overrides: readonly string[], options: TrainOptions) => {
      if (options.init) return terminal.out(writtenText(config, await writeTemplate(config)));
      const named = overridingOptions.filter((name) => options[name] !== undefined);
      const all = [
        ...overrides,
        ...(options.engine
          ? [{ text: `engine.vllm=${JSON.stringify(options.engine)}`, flag: "--engine" }]
          : []),
        ...named.map((name) => ({ text: `${name}=${JSON.stringify(options[name])}`, flag: `--${name}` })),
      ];
      await train(config, all, { ...options, terminal, loadTasks });
    });
}

const writtenText = (file: string, written: readonly string[]): string =>
  `wrote ${written.join(" and ")}. Set model, dataset and questions (null downloads ARC-Challenge), then run:
  npx periodic-eval plan ${shellWord(file)}
  npx periodic-eval train ${shellWord(file)}
To fail a CI job if the model got worse, then run:
  npx periodic-eval gate runs/1 --fail-on 'capability worse'`;

/**
 * Trains the phases that a file describes and prints the report. Run again, it resumes.
 *
 * @param overrides Override the file's values: `phases.0.config.maxSteps=10`.
 * @throws PeriodicEvalError with file and line for every error that shows before weights are loaded. By then only the list of
 *   bad rows has been written. Several errors are an AggregateError.
 */
export async function train(
  path: string,
  overrides: readonly (string | FlagOverride)[],
  {
    json,
    serve,
    terminal,
    loadTasks,
    resumeCommand: command = "the same command",
  }: Pick<TrainOptions, "json" | "serve"> & {
    readonly terminal: Terminal;
    readonly loadTasks: LoadTasks;
    /** For messages. */
    readonly resumeCommand?: string;
  },
): Promise<void> {
  const progress = json ? progressOnly(terminal) : terminal;
  const file = await readConfigFile(path, overrides);
  const parsed = parseTrainingFile(file);
  const { config } = parsed;
  const { run_dir: runDir, resume } = config;
  const prepared = await prepareTraining(parsed, progress, loadTasks);
  if (config.periodic_eval === undefined) progress.out(noBlockText(path));
  const { differences, keep } = await openKeptConfig(config);
  for (const difference of differences) progress.err(difference);
  // The same command with resume=never would start over again.
  const resumeCommand = resume === "never" ? `${command} with resume=auto` : command;
  const results = await withServedRun(runDir, { serve, terminal: progress }, async () =>
    fineTune(config, prepared, { keep, resumeCommand }, progress).catch((error: unknown) => {
      // Groups of metrics, and limits that already hold, are known only at the start.
      throw isAboutBlock(error) ? atPlace(file, error, (path) => [...parsed.blockPath, ...path]) : error;
    }),
  ).finally(() => prepared.server?.dispose());
  await reportRun(runDir, { json }, terminal);
  checkUndisturbed(results, runDir, resumeCommand);
  const { conditionStop, lastClean, restored, phase } = results.at(-1)!;
  if (conditionStop === null) return;
  const clean =
    lastClean === null ? "no checkpoint before it" : `last clean checkpoint: ${lastClean.checkpoint}`;
  progress.err(
    `stop_when ended ${phase} at step ${conditionStop.step}: ${conditionStop.reason}; ${clean}${restored === null ? "" : `, whose weights are in ${restored}`}`,
  );
  throw new CommandFailure(stoppedCode);
}
