import { PeriodicEvalError } from "@periodic-eval/core";
import { changedError, codeOption, isNotCached, command, dataError } from "@periodic-eval/contracts/options";
import { cachedSplit, fetchSplit, isHubSource, isOffline, openHubCache } from "@periodic-eval/data";
import { datasetOf } from "../tasks/datasets.ts";
import type { AnyFamily } from "../families/family.ts";
import type { ChosenTask } from "./open-tasks.ts";

/** The splits that a task needs from the hub and that are not in the cache. */
export interface MissingData {
  readonly task: string;
  /** `hf:owner/dataset/config/split`. */
  readonly sources: readonly string[];
}

/**
 * Finds and reads the documents of all tasks, and downloads what is on the hub and not in the cache, before a model loads.
 *
 * @param onDownload Called for each task before its first split is downloaded.
 * @throws PeriodicEvalError `data` for a missing folder or file, and for rows of another kind; for a dataset without a split of the task; and one error for
 *   all datasets that are not in the cache if there is no network, with the commands that fetch them.
 */
export async function fetchTaskData(
  chosen: readonly ChosenTask[],
  onDownload?: (missing: MissingData) => void,
): Promise<void> {
  const unreachable: Unreachable[] = [];
  for (const { name: task, task: definition, options, withSettingPath } of chosen) {
    let missing: MissingData = { task, sources: [] };
    try {
      const sources = (await definition.sources?.(options)) ?? [];
      missing = { task, sources: await notCached(sources, task) };
      if (missing.sources.length > 0 && !isOffline()) onDownload?.(missing);
      for (const source of missing.sources) await fetchSplit(source, codeOption(task, "data"));
    } catch (cause) {
      if (!isNotCached(cause)) throw withSettingPath(withDatasetHint(cause, task, options.data));
      unreachable.push({ ...missing, cause, reason: cause.detail.reason });
    }
  }
  const [first, ...rest] = unreachable;
  if (first !== undefined) throw notFetched([first, ...rest]);
  for (const { name, task, evaluation, options, withSettingPath } of chosen) {
    // The tasks that know their sources keep what they read.
    if (task.sources === undefined) continue;
    try {
      await (evaluation as Partial<AnyFamily>).length?.();
    } catch (cause) {
      throw withSettingPath(withDatasetHint(cause, name, options.data));
    }
  }
}

async function notCached(sources: readonly string[], task: string): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const source of sources)
    if (isHubSource(source) && (await cachedSplit(source, `${task} options.data`)) === null)
      missing.push(source);
  return missing;
}

/** Adds to the error of a dataset that is not the task's own where the task's own dataset is. */
function withDatasetHint(error: unknown, task: string, data: string): unknown {
  const known = datasetOf(task);
  if (!PeriodicEvalError.is(error, "data") || known === null || known.source === data || !isHubSource(data))
    return error;
  const hint = `${task} is in ${known.source}, which is read if no other data is named; a suite may set \`data\` per task.`;
  return changedError(error, { fix: `${error.fix} ${hint}`, cause: error });
}

interface Unreachable extends MissingData {
  readonly cause: PeriodicEvalError;
  /** Why the hub could not be asked. */
  readonly reason: string;
}

/** Returns the error for all datasets that cannot be had, with the commands that fetch them. */
function notFetched(missing: readonly [Unreachable, ...Unreachable[]]): PeriodicEvalError {
  const names = [...new Set(missing.map(downloadName))];
  const [{ cause, reason }] = missing;
  const commands = names.map((name) => command(`data get ${name} --out data`)).join(", ");
  return dataError(
    `data of ${missing.map(({ task }) => task).join(", ")}`,
    `${reason}, but the cache lacks ${missing.map(cacheText).join(", ")}`,
    "datasets in the cache, a data folder, or a network",
    `Run ${commands} on a machine with network, copy the folder and name it: \`data: "data"\` (--data data). Or ${isOffline() ? "unset HF_HUB_OFFLINE" : "check the network and HF_ENDPOINT"}.`,
    cause,
  );
}

const cacheText = (missing: MissingData): string => {
  const name = datasetName(missing).slice("hf:".length);
  return `${downloadName(missing)} (${openHubCache({ type: "dataset", name }).root})`;
};

/** Returns the dataset's name in `data get`. */
function downloadName(missing: MissingData): string {
  const source = datasetName(missing);
  const known = datasetOf(missing.task);
  return known?.source === source ? known.name : source;
}

/** Returns `hf:owner/dataset`. */
const datasetName = ({ sources: [source] }: MissingData): string => source!.split("/").slice(0, 2).join("/");
