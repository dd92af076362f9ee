import {
  PeriodicEvalError,
  type AnyEvaluation,
  type EvaluableModel,
  type Json,
  type Row,
} from "@periodic-eval/core";
import { prepareEvaluation } from "@periodic-eval/core/session";
import { taskNamed } from "../tasks/registry.ts";
import type { TaskOptions } from "../tasks/task.ts";
import type { SampledTask } from "../tasks/task.ts";
import { taskOptionsOf, type Suite } from "./suite-file.ts";

/** Tasks by name. */
export type TaskRegistry = Readonly<Record<string, SampledTask>>;

/** A task of a suite, before there is a model. */
export interface ChosenTask {
  readonly name: string;
  readonly version: string;
  readonly task: SampledTask;
  readonly options: TaskOptions;
  readonly evaluation: AnyEvaluation;
  /** What the suite says of it, and the task's own number of shots where it does not. */
  readonly settings: { readonly [key: string]: Json };
}

/** A task whose documents are read. */
export interface OpenTask extends ChosenTask {
  readonly items: readonly Row[];
  readonly itemsHash: string;
  readonly provenance: Json;
}

/**
 * The tasks of a suite, in its order.
 *
 * @throws PeriodicEvalError `config` for one that the registry has not, or options that a task refuses.
 */
export function chooseTasks(suite: Suite, registry: TaskRegistry, data: string): readonly ChosenTask[] {
  return Object.entries(suite.tasks).map((entry) => {
    const [name] = entry;
    const task = taskNamed(registry, name, `suite "${suite.name}", tasks`);
    const options = taskOptionsOf(suite, entry, data);
    const { limit = null, subsample = null, chat = null } = options;
    return {
      name,
      version: task.version,
      task,
      options,
      evaluation: task.open(options),
      settings: {
        shots: options.shots ?? task.defaultShots,
        limit,
        subsample: subsample && { ...subsample },
        chat: chat && { ...chat },
      },
    };
  });
}

/**
 * Reads the documents of all tasks, so that what is wrong with the last is known before the first is measured.
 *
 * @throws PeriodicEvalError `data` for bad documents; `model` where the model lacks an ability.
 */
export async function openTasks(
  chosen: readonly ChosenTask[],
  model: EvaluableModel,
): Promise<readonly OpenTask[]> {
  const open: OpenTask[] = [];
  for (const one of chosen) {
    const { evaluation, name } = one;
    const cache = { prepared: new Map() };
    const prepared = await prepareEvaluation(cache, model, evaluation, "model", `task "${name}"`);
    const { items, itemsHash } = prepared;
    open.push({ ...one, items, itemsHash, provenance: evaluation.provenance?.() ?? null });
  }
  return open;
}

/** @throws PeriodicEvalError `config` for a registry whose tasks stand under other names than their own. */
export function checkRegistry(registry: TaskRegistry): void {
  for (const [name, task] of Object.entries(registry)) {
    if (task.name === name) continue;
    throw new PeriodicEvalError({
      code: "config",
      where: "Evaluator tasks",
      got: `"${task.name}" under the name "${name}"`,
      expected: "each task under its own name",
      fix: "Write { [task.name]: task }.",
    });
  }
}
