import type { EvaluationRegistry } from "@periodic-eval/core";
import { isHubSource } from "@periodic-eval/data";
import { configError } from "@periodic-eval/contracts/options";
import { evaluationsOf } from "../evaluations-of.ts";
import type { TaskRegistry } from "../tasks/registry.ts";
import { fetchTaskData, type MissingData } from "./fetch-data.ts";
import { chooseTasks, type ChosenTask } from "./open-tasks.ts";
import { chooseEvaluations } from "./suite-evaluations.ts";
import type { Suite } from "./suite-file.ts";
import type { DataRoot } from "./task-data.ts";

/** Refuses one split as the data of several tasks: they would all read the same rows. A dataset holds a split for each task. */
function checkSharedSplit(chosen: readonly ChosenTask[], { given }: DataRoot): void {
  if (given === null || !isHubSource(given) || given.split("/").length <= 2) return;
  const readers = chosen.filter(({ options }) => options.data === given);
  if (readers.length < 2 || readers.every(({ task }) => task.sources === undefined)) return;
  const names = readers.map(({ name }) => name);
  throw configError({
    where: "data (--data)",
    got: `the split ${given} for ${names.length} tasks (${names.join(", ")})`,
    expected: "a source for each task",
    fix: `Set \`data\` per task in the suite (\`${names[0]}: { data: "${given}" }\`), name a folder with one folder per task, or measure one task.`,
  });
}

/** Refuses a dataset that no task reads, because each names its own data. */
function checkReadSource(
  { tasks, evaluations }: Suite,
  listed: readonly ChosenTask[],
  { given, folder }: DataRoot,
): void {
  // An entry of `evaluations` may read it.
  if (given === null || !isHubSource(given) || evaluations !== undefined) return;
  if (listed.some(({ options }) => options.data === given)) return;
  const named = Object.entries(tasks).map(([name, { data }]) => `${name}: ${data}`);
  throw configError({
    where: "data (--data)",
    got: `${given}, which no task reads: each names its own \`data\` (${named.join(", ")})`,
    expected: "a dataset of a task without `data`",
    fix: `Remove it to read the data that the suite names (relative paths are in ${folder}), or remove \`data\` from the suite.`,
  });
}

export interface OpenSuiteOptions {
  /** Creates the entries of `evaluations`. Default: `evaluationsOf(tasks)`. */
  readonly evaluations?: EvaluationRegistry;
  readonly onDownload?: (missing: MissingData) => void;
}

/**
 * Returns the tasks and evaluations of a suite, in its order, after finding their data, or downloading it. Loads no weights.
 *
 * @throws PeriodicEvalError `config` for one split as the data of several tasks, and for a dataset that no task reads; as `chooseTasks`, `chooseEvaluations` and `fetchTaskData`.
 */
export async function openSuite(
  suite: Suite,
  tasks: TaskRegistry,
  root: DataRoot,
  { evaluations = evaluationsOf(tasks), onDownload }: OpenSuiteOptions = {},
): Promise<readonly ChosenTask[]> {
  const listed = chooseTasks(suite, tasks, root);
  checkSharedSplit(listed, root);
  checkReadSource(suite, listed, root);
  const chosen = [...listed, ...(await chooseEvaluations(suite, evaluations, root))];
  await fetchTaskData(chosen, onDownload);
  return chosen;
}
