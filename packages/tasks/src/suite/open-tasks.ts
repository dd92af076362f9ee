import {
  PeriodicEvalError,
  type AnyEvaluation,
  type EvaluableModel,
  type Json,
  type Row,
} from "@periodic-eval/core";
import { atWritten, entryAt, pathText } from "@periodic-eval/contracts/options";
import { prepareEvaluation } from "@periodic-eval/core/session";
import { isNoRoom } from "../families/fit-prompt.ts";
import { taskNamed, type TaskRegistry } from "../tasks/registry.ts";
import type { TaskOptions, SampledTask } from "../tasks/task.ts";
import { taskOptionsOf, type Suite, type DataRoot } from "./suite-file.ts";

/** A task of a suite, before a model is open. */
export interface ChosenTask {
  readonly name: string;
  readonly version: string;
  readonly task: SampledTask;
  readonly options: TaskOptions;
  readonly evaluation: AnyEvaluation;
  /** The suite's settings of the task; `shots` defaults to the task's `defaultShots`. */
  readonly settings: { readonly [key: string]: Json };
  /** Returns an error about an option of the task as one about the setting that the user wrote. */
  readonly withSettingPath: (error: unknown) => unknown;
}

/** A task with its documents. */
export interface OpenTask extends ChosenTask {
  readonly items: readonly Row[];
  readonly itemsHash: string;
  readonly provenance: Json;
}

/**
 * Returns the tasks of a suite, in its order.
 *
 * @throws PeriodicEvalError `config` for an unknown task, or options that a task rejects.
 */
export function chooseTasks(suite: Suite, registry: TaskRegistry, data: DataRoot): readonly ChosenTask[] {
  return Object.entries(suite.tasks).map((entry) => {
    const [name] = entry;
    const withSettingPath = (error: unknown) => withTaskSettingPath(error, suite, name, data);
    const task = taskNamed(registry, name, `suite "${suite.name}"`, ["tasks", name]);
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
      withSettingPath,
    };
  });
}

/**
 * Reads the documents of all tasks, so that mistakes in the last one are reported before the first is measured.
 *
 * @throws PeriodicEvalError `data` for bad documents; `model` where the model lacks an ability; `config` for all tasks that do not
 *   fit into the model's context.
 */
export async function openTasks(
  chosen: readonly ChosenTask[],
  model: EvaluableModel,
): Promise<readonly OpenTask[]> {
  const open: OpenTask[] = [];
  const tooLong: [task: string, error: PeriodicEvalError][] = [];
  for (const task of chosen) {
    const { evaluation, name } = task;
    const cache = { prepared: new Map() };
    try {
      const prepared = await prepareEvaluation(cache, model, evaluation, "model", `task "${name}"`);
      const { items, itemsHash } = prepared;
      open.push({ ...task, items, itemsHash, provenance: evaluation.provenance?.() ?? null });
    } catch (error) {
      if (!isNoRoom(error)) throw task.withSettingPath(error);
      tooLong.push([name, error]);
    }
  }
  if (tooLong.length > 0) throw noRoom(tooLong, open);
  return open;
}

/** Returns one error for all tasks whose completions leave no room for prompts. */
function noRoom(
  tooLong: readonly (readonly [task: string, error: PeriodicEvalError])[],
  open: readonly OpenTask[],
): PeriodicEvalError {
  const fitting = open.map(({ name }) => name).join(",");
  return new PeriodicEvalError({
    code: "config",
    where: `tasks ${tooLong.map(([name]) => name).join(", ")}`,
    path: ["maxNewTokens"],
    got: tooLong.map(([name, { got }]) => `${name}: ${got}`).join("; "),
    expected: "a context that has room for prompts and new tokens",
    fix: `Measure a model with a longer context, or leave these tasks out${fitting === "" ? "" : ` (--tasks ${fitting})`}. Fewer shots shorten prompts, and --limit may leave out the longest; neither shortens completions.`,
    cause: tooLong[0]![1],
  });
}

/** Returns an error about an option of a task as one about the suite's setting, or about the data that the caller names. */
function withTaskSettingPath(error: unknown, suite: Suite, name: string, data: DataRoot): unknown {
  const settings = suite.tasks[name]!;
  const task = entryAt(settings, `suite "${suite.name}".tasks.${name}`, ["tasks", name]);
  const isOfCaller = settings.data === undefined && data.given !== null;
  return atWritten(error, {
    ...task,
    where: (path) => (path[0] === "data" ? `data (--data)${pathText(path.slice(1))}` : task.where(path)),
    pathOf: (option) => (option[0] === "data" && isOfCaller ? option : task.pathOf(option)),
  });
}
