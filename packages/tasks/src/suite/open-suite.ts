import { resolve } from "node:path";
import { configError, checkName, isRecord } from "@periodic-eval/contracts/options";
import type { EvaluationRegistry, Json } from "@periodic-eval/core";
import { openEntry } from "@periodic-eval/core/config";
import { isHubSource } from "@periodic-eval/data";
import { resolveEntryPaths } from "../comparisons/entry-paths.ts";
import { evaluationsOf } from "../evaluations-of.ts";
import type { TaskRegistry } from "../tasks/registry.ts";
import { fetchTaskData, type MissingData } from "./fetch-data.ts";
import { chooseTasks, type ChosenTask } from "./open-tasks.ts";
import { type Suite, type DataRoot, placeInRoot, sourceOfTask } from "./suite-file.ts";

/**
 * Refuses one split as the data of several tasks, which would all read the same rows (a dataset holds a split for each task), and
 * a dataset that no task reads, because each names its own data.
 */
function checkSource(
  { tasks, evaluations }: Suite,
  listed: readonly ChosenTask[],
  { given, folder }: DataRoot,
): void {
  if (given === null || !isHubSource(given)) return;
  const where = "data (--data)";
  const readers = listed.filter(({ options }) => options.data === given);
  const isSplit = given.split("/").length > 2;
  if (isSplit && readers.length > 1 && readers.some(({ task }) => task.sources !== undefined)) {
    const names = readers.map(({ name }) => name);
    throw configError({
      where,
      got: `the split ${given} for ${names.length} tasks (${names.join(", ")})`,
      expected: "a source for each task",
      fix: `Set \`data\` per task in the suite (\`${names[0]}: { data: "${given}" }\`), name a folder with one folder per task, or measure one task.`,
    });
  }
  // An entry of `evaluations` may read it.
  if (evaluations !== undefined || readers.length > 0) return;
  const named = Object.entries(tasks).map(([name, { data }]) => `${name}: ${data}`);
  throw configError({
    where,
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
  checkSource(suite, listed, root);
  const chosen = [...listed, ...(await chooseEvaluations(suite, evaluations, root))];
  await fetchTaskData(chosen, onDownload);
  return chosen;
}

type Entry = Readonly<Record<string, unknown>>;

/**
 * Opens the entries of a suite's `evaluations`: the kinds of `registry` except tasks, such as
 * `{ win_rate: prompts.jsonl, reference: path/to/model, judge: openai:MODEL }`. Relative paths are in the folder of
 * the data, which defaults to the folder of the suite's file.
 *
 * @throws PeriodicEvalError `config` or `data` at the entry, for an unknown kind, a name that occurs twice, or what the kind refuses.
 */
export async function chooseEvaluations(
  suite: Suite,
  registry: EvaluationRegistry,
  root: DataRoot,
): Promise<readonly ChosenTask[]> {
  const chosen: ChosenTask[] = [];
  const { task: _, ...kinds } = registry;
  const where = `suite "${suite.name}"`;
  for (const [at, item] of (suite.evaluations ?? []).entries()) {
    const path = ["evaluations", at] as const;
    const { id, ...entry } = item;
    const options = resolved(entry, suite, root);
    const evaluation = await openEntry(options, kinds, { where, path }, (opened) => opened);
    const name = (id as string | undefined) ?? evaluation.name;
    checkName(where, name, path);
    if (Object.hasOwn(suite.tasks, name) || chosen.some((other) => other.name === name))
      throw configError({
        where,
        path,
        got: `"${name}", the name of another task or evaluation`,
        expected: "unique names",
        fix: "Set an id: it names the results.",
      });
    const { limit = null, subsample_n: subsample = null } = entry;
    const { version } = evaluation;
    chosen.push({
      name,
      version,
      task: { name, version, defaultShots: 0, open: () => evaluation },
      options: { data: "" },
      evaluation,
      settings: { shots: 0, limit: limit as Json, subsample: subsample as Json, chat: null },
      // Its items place their errors themselves.
      withSettingPath: (error) => error,
    });
  }
  return chosen;
}

/** Returns an entry with its paths in the folder of the data, and with the data that the suite gives its tasks. */
function resolved(entry: Entry, { tasks }: Suite, root: DataRoot): Entry {
  const paths = resolveEntryPaths(entry, (path) => resolve(placeInRoot(path, root)));
  const withData = (value: unknown) => {
    if (!isRecord(value) || typeof value["task"] !== "string" || value["data"] !== undefined) return value;
    const { task } = value;
    const { data, fewshot_pool: pool } = (Object.hasOwn(tasks, task) ? tasks[task] : undefined) ?? {};
    return {
      ...(pool !== undefined && { fewshot_pool: placeInRoot(pool, root) }),
      ...value,
      data: sourceOfTask(task, data, root),
    };
  };
  return Object.fromEntries(Object.entries(paths).map(([key, value]) => [key, withData(value)]));
}
