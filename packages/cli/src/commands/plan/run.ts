import type { EvaluableModel } from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/core/tfjs";
import { fileKeyPath } from "../../config/config-paths.ts";
import { withBlockPlace } from "../../config/config-place.ts";
import { readEvalBlock } from "../../config/eval-block.ts";
import { openModel, openModelOutline, startBackend } from "../../config/open-model.ts";
import { loadEvaluations, type LoadTasks } from "../../config/task-registry.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import type { PlanOptions } from "./command.ts";
import { planBlock, type PlannedCallback, type TrialModel } from "./plan-block.ts";

/** Plans the `periodic_eval` block of a file; see `planBlock`. Errors name file and line. */
export async function plan(
  path: string,
  { phase: phases, model, backend }: PlanOptions,
  { terminal, loadTasks }: { readonly terminal: Terminal; readonly loadTasks: LoadTasks },
): Promise<readonly PlannedCallback[]> {
  const { file, at, block } = await readEvalBlock(path);
  const evaluations = await loadEvaluations(loadTasks);
  const opened = model === undefined ? null : await trialModel(model, backend, terminal);
  const trial = opened && { ...opened, isAdapted: !trainsAllWeights(file.value) };
  const names = phases.map(({ name }) => name);
  try {
    return await withBlockPlace(
      file,
      at,
      () => planBlock(block, phases, trial, evaluations),
      (error) => fileKeyPath(block, names, error),
    );
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
  return {
    outline: await openModelOutline(source, terminal),
    async open(): Promise<EvaluableModel> {
      await startBackend(backend, terminal);
      const { model, tokenizer } = await openModel(source, terminal);
      dispose = () => model.dispose();
      return inMemory(model, tokenizer);
    },
    dispose: () => dispose(),
  };
}
