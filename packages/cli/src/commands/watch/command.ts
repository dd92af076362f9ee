import { watch } from "./run.ts";
import { isRecord } from "@periodic-eval/contracts/options";
import { buildPeriodicEval, type Logger, type PeriodicEval } from "@periodic-eval/core";
import { Option, type Command } from "commander";
import { backendOption, engineOption } from "../../config/command-options.ts";
import {
  valueAt,
  fileError,
  withOptionPlace,
  isTrainingFile,
  noBlockText,
  readEvalBlock,
  type EvalBlock,
} from "../../config/config-file.ts";
import { openGrader, type LoadTasks, loadEvaluations } from "../../config/open-grader.ts";
import { openLoggers } from "../../config/open-loggers.ts";
import type { Terminal } from "../../terminal/terminal.ts";

export interface WatchCommandOptions {
  readonly base: string;
  readonly tokenizer?: string;
  readonly config?: string;
  readonly runDir: string;
  readonly phase?: string;
  readonly follow: boolean;
  readonly order: "all" | "latest";
  readonly pattern?: string;
  readonly engine?: readonly string[];
  readonly backend?: string;
  readonly json: boolean;
}

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

/** The evaluations of checkpoints, and the loggers that receive their results. */
export interface WatchConfiguration {
  readonly phase: string;
  readonly seed: string;
  readonly block: PeriodicEval;
  readonly loggers: readonly Logger[];
}

interface ConfigurationOptions {
  readonly config?: string;
  readonly phase?: string;
  readonly runDir: string;
}

/**
 * Builds the `periodic_eval` block of a file as `train` does, and opens the file's loggers. Without a file: the defaults of the
 * block.
 *
 * @throws PeriodicEvalError with file and line for a wrong value.
 */
export async function configure(
  { config, phase: given, runDir }: ConfigurationOptions,
  loadTasks: LoadTasks,
): Promise<WatchConfiguration> {
  const build = async (block: unknown, phase: string, phases: readonly string[]) =>
    buildPeriodicEval(
      { periodic_eval: block },
      {
        phase,
        ...(phases.length > 0 && { phases }),
        openJudge: (model, options) => openGrader(model, { runDir, ...options }),
        evaluations: await loadEvaluations(loadTasks),
      },
    );
  if (config === undefined) {
    const phase = given ?? "train";
    return { phase, seed: "42", block: await build({}, phase, []), loggers: [] };
  }
  const read = await readEvalBlock(config);
  const { file, at, block } = read;
  if (isTrainingFile(file) && at.length === 0)
    throw fileError(file, [], {
      got: "a training file without a periodic_eval block",
      expected: "a block that says what to measure",
      fix: noBlockText(config),
    });
  const phases = phaseNames(read);
  const phase = given ?? (phases.length === 1 ? phases[0]! : "train");
  // A phase of another trainer need not be in the file.
  const known = phases.length === 0 ? [] : [...new Set([...phases, phase])];
  const built = await withOptionPlace(file, at, () => build(block, phase, known));
  const seed = valueAt(file.value, ["seed"]);
  return {
    phase,
    seed: typeof seed === "number" ? String(seed) : "42",
    block: built,
    loggers: await openLoggers(file, valueAt(file.value, ["loggers"]), runDir),
  };
}

function phaseNames({ file }: EvalBlock): readonly string[] {
  const phases = isTrainingFile(file) ? (valueAt(file.value, ["phases"]) as readonly unknown[]) : [];
  return phases.flatMap((one) => (isRecord(one) && typeof one["phase"] === "string" ? [one["phase"]] : []));
}
