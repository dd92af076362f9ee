import { planJson, planTables } from "./output.ts";
import type { EvaluableModel } from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/data/config";
import { outlineCausalLM } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { inMemory } from "@periodic-eval/tfjs";
import { countSteps, type CountOptions } from "@periodic-eval/trainers";
import { InvalidArgumentError, Option, type Command } from "commander";
import { backendOption, flagsOf } from "../../config/command-options.ts";
import {
  throwAll,
  withOptionPlace,
  atPlace,
  withPlace,
  isTrainingFile,
  noBlockText,
  readEvalBlock,
} from "../../config/config-file.ts";
import { openModel, openModelOutline, startBackend } from "../../config/open-model.ts";
import { type LoadTasks, loadEvaluations } from "../../config/open-grader.ts";
import { showLoading, showMeasuring } from "../../terminal/progress.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { pipelinePhase } from "../train/prepare.ts";
import { parseTrainingFile, phasePathOf, type TrainConfig } from "../train/training-file.ts";
import { type PlannedPhase, planBlock, type Plan, type TrialModel } from "./plan-block.ts";

export interface PlanOptions {
  /** Default: the phases of a training file. */
  readonly phase?: readonly PlannedPhase[];
  /** True for the model of a training file. */
  readonly model?: string | true;
  /** The model whose tokenizer renders the prompts to print. True for the model of a training file. */
  readonly prompts?: string | true;
  readonly backend?: string;
  readonly json: boolean;
}

/** `plan`: prints what a configuration will measure and what that costs, before anything runs. */
export function addPlan(program: Command, terminal: Terminal, loadTasks: LoadTasks): void {
  program
    .command("plan")
    .description("print when a configuration measures, what that costs, and the prompts")
    .argument("<config>", "a training file, or a file with a periodic_eval block")
    .option(
      "--phase <name=steps>",
      "a phase and its steps; repeatable (default: the file's)",
      (value: string, before: readonly PlannedPhase[] | undefined) => [...(before ?? []), parsePhase(value)],
    )
    .option(
      "--model [folder]",
      "measure a few items on it to estimate seconds and tokens (default: the model of the file)",
    )
    .addOption(
      new Option("--prompts [folder]", "print the first prompts token by token; loads no weights").conflicts(
        "model",
      ),
    )
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action(async (config: string, options: PlanOptions, self: Command) => {
      const planned = await plan(config, options, { terminal, loadTasks });
      if ("missing" in planned)
        self.error(
          `error: required option '${flagsOf(self, planned.missing)}' not specified, and ${config} is not a training file that sets it`,
        );
      if (planned.callbacks.length === 0 && !options.json) return;
      terminal.out(options.json ? planJson(planned, config) : planTables(planned, terminal.colours));
    });
}

function parsePhase(value: string): PlannedPhase {
  const [, name, steps] = /^([A-Za-z0-9][\w.-]*)=(\d+)$/.exec(value) ?? [];
  if (name === undefined || Number(steps) < 1)
    throw new InvalidArgumentError("Expected name=steps, such as em=500.");
  return { name, maxSteps: Number(steps) };
}

/**
 * Plans the `periodic_eval` block of a file; see `planBlock`. A training file gives the phases, their steps and the model.
 *
 * @returns The option that is missing because the file is not a training file.
 * @throws PeriodicEvalError with file and line.
 */
async function plan(
  path: string,
  { phase: fromFlag, model, prompts, backend }: PlanOptions,
  { terminal, loadTasks }: { readonly terminal: Terminal; readonly loadTasks: LoadTasks },
): Promise<Plan | { readonly missing: keyof PlanOptions }> {
  const { file, at, block } = await readEvalBlock(path);
  const isTraining = isTrainingFile(file);
  if (isTraining && at.length === 0) {
    terminal.err(noBlockText(path));
    return { callbacks: [], stepTimes: {} };
  }
  const named = model ?? prompts;
  const training = isTraining && (fromFlag === undefined || named === true) ? parseWholeTraining(file) : null;
  const phases = fromFlag ?? (training && (await phasesOf(training, file, terminal)));
  const source = named === true ? training?.model : named;
  if (phases === null) return { missing: "phase" };
  if (named === true && source === undefined) return { missing: model === undefined ? "prompts" : "model" };
  const evaluations = await loadEvaluations(loadTasks);
  const opened = source === undefined ? null : await trialModel(source, backend, terminal);
  const trial = opened && {
    ...opened,
    isAdapted: !trainsAllWeights(file.value),
    ...(model === undefined && { open: null }),
  };
  try {
    return await withOptionPlace(file, at, () => planBlock(block, phases, trial, evaluations));
  } finally {
    trial?.dispose();
  }
}

/** Whether a file describes a training of all weights. A file with only a block does not say, so the answer is no. */
const trainsAllWeights = (config: unknown): boolean => {
  const { phases, lora, adapter } = (config ?? {}) as Readonly<Record<string, unknown>>;
  return Array.isArray(phases) && lora === undefined && adapter === undefined;
};

/** Opens a model's outline now, and its weights only when `open` is called. */
async function trialModel(
  source: string,
  backend: string | undefined,
  terminal: Terminal,
): Promise<Omit<TrialModel, "isAdapted"> & { dispose(): void }> {
  let dispose = () => {};
  const display = showMeasuring(terminal, { edges: false });
  return {
    show: display.show,
    warn: (message) => terminal.err(`warning: ${message}`),
    outline: await openModelOutline(source, terminal),
    async open(): Promise<EvaluableModel> {
      await startBackend(backend, terminal);
      const { model, tokenizer } = await openModel(source, terminal);
      dispose = () => model.dispose();
      return inMemory(model, tokenizer);
    },
    dispose() {
      display.close();
      dispose();
    },
  };
}

/** @throws PeriodicEvalError `config` with file and line; several errors are an AggregateError. */
function parseWholeTraining(file: ConfigFile): TrainConfig {
  const { config, errors } = parseTrainingFile(file);
  throwAll(errors);
  return config;
}

/**
 * Returns the phases of a training file with the steps that their trainers will count. Rows are only read for `epochs`, which
 * needs the model's tokenizer, but never its weights.
 *
 * @throws PeriodicEvalError with file and line for a model or a dataset that cannot be read.
 */
async function phasesOf(
  config: TrainConfig,
  file: ConfigFile,
  terminal: Terminal,
): Promise<readonly PlannedPhase[]> {
  const shared: TrainConfig["config"] = { seed: config.seed, ...config.config };
  const needsRows = config.phases.some((phase) => ({ ...shared, ...phase.config })["maxSteps"] == null);
  const outline = needsRows ? await openOutline(config, file, terminal) : null;
  const phases: PlannedPhase[] = [];
  for (const [at, phase] of config.phases.entries()) {
    const options = { config: shared, open: async () => outline! };
    try {
      phases.push({
        name: phase.phase,
        maxSteps: await countSteps(pipelinePhase(config, at, null), options),
      });
    } catch (error) {
      throw atPlace(file, error, phasePathOf(phase, at, config.config));
    }
  }
  return phases;
}

async function openOutline(
  { model: source, tokenizer: tokenizerSource = source }: TrainConfig,
  file: ConfigFile,
  terminal: Terminal,
): ReturnType<CountOptions["open"]> {
  const key = tokenizerSource === source ? "model" : "tokenizer";
  return showLoading(terminal, async ({ onDownload }) => ({
    tokenizer: await withPlace(file, [key], () => loadTokenizer(tokenizerSource, { onDownload })),
    model: await withPlace(file, ["model"], () => outlineCausalLM(source, { onDownload })),
  }));
}
