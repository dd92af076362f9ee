import type { EvaluableModel, ValuePath } from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/core/config";
import { isRecord, nearest } from "@periodic-eval/contracts/options";
import { inMemory } from "@periodic-eval/tfjs";
import { valueAt } from "../../config/config-paths.ts";
import { fileError, withOptionPlace } from "../../config/config-place.ts";
import { isTrainingFile, noBlockText, readEvalBlock } from "../../config/eval-block.ts";
import { openModel, openModelOutline, startBackend } from "../../config/open-model.ts";
import { loadEvaluations, type LoadTasks } from "../../config/task-registry.ts";
import { showMeasuring } from "../../terminal/measuring-progress.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import type { PlanOptions } from "./command.ts";
import { planBlock, type PlannedCallback, type TrialModel } from "./plan-block.ts";
import { parseWholeTraining, phasesOf } from "./training-phases.ts";

/**
 * Plans the `periodic_eval` block of a file; see `planBlock`. A training file gives the phases, their steps and the model.
 *
 * @returns The option that is missing because the file is not a training file.
 * @throws PeriodicEvalError with file and line.
 */
export async function plan(
  path: string,
  { phase: given, model, prompts, backend }: PlanOptions,
  { terminal, loadTasks }: { readonly terminal: Terminal; readonly loadTasks: LoadTasks },
): Promise<readonly PlannedCallback[] | { readonly missing: keyof PlanOptions }> {
  const { file, at, block } = await readEvalBlock(path);
  const isTraining = isTrainingFile(file);
  if (isTraining && at.length === 0) {
    terminal.err(noBlockText(path));
    return [];
  }
  const named = model ?? prompts;
  const training = isTraining && (given === undefined || named === true) ? parseWholeTraining(file) : null;
  const phases = given ?? (training && (await phasesOf(training, file, terminal)));
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
  const names = phases.map(({ name }) => name);
  if (given !== undefined) requirePhases(file, at, block, names);
  try {
    return await withOptionPlace(file, at, () => planBlock(block, phases, trial, evaluations));
  } finally {
    trial?.dispose();
  }
}

/** @throws PeriodicEvalError `config` for overrides of a phase that no `--phase` names, unless one of them is nearly that name. */
function requirePhases(file: ConfigFile, at: ValuePath, block: unknown, names: readonly string[]): void {
  const overrides = valueAt(block, ["phases"]);
  const missing = isRecord(overrides) ? Object.keys(overrides).filter((name) => !names.includes(name)) : [];
  const name = missing.find((one) => nearest(one, names) === null);
  if (name === undefined) return;
  throw fileError(file, [...at, "phases", name], {
    got: `overrides of the phase ${name}, and no --phase ${name}=STEPS`,
    expected: "a --phase for each phase of the run",
    fix: `Add ${missing.map((one) => `--phase ${one}=STEPS`).join(" ")}, or remove these overrides.`,
  });
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
