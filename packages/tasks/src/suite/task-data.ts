import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { isHubSource } from "@periodic-eval/data";
import { datasetOf } from "../tasks/datasets.ts";

/** Where the tasks of a suite look for their documents. */
export interface DataRoot {
  /** A folder with one folder per task, or `hf:owner/dataset` for all tasks; null if the caller names neither. */
  readonly given: string | null;
  /** The folder of the suite's file. It is searched before the hub if no folder is given. */
  readonly folder: string;
}

/**
 * Returns the source of a task's documents:
 *
 * 1. `data` of the suite, if it is absolute or begins with `hf:`;
 * 2. for a task without `data`: the dataset that the caller gives;
 * 3. in the caller's folder, otherwise in that of the suite's file: `data`, or the task's own folder (see `folderNames`);
 * 4. if the caller names no folder and there is none: the caller's dataset, or that of a task that is part of this package. A
 *    folder that only the suite names is never replaced by the hub.
 *
 * @param data The suite's setting.
 */
export function sourceOfTask(task: string, data: string | undefined, { given, folder }: DataRoot): string {
  if (data !== undefined && (isHubSource(data) || isAbsolute(data))) return data;
  const dataset = given !== null && isHubSource(given) ? given : null;
  if (dataset !== null && data === undefined) return dataset;
  const root = dataset === null ? (given ?? folder) : folder;
  const names = folderNames(task);
  const known = datasetOf(task);
  const isUsual = data === undefined || names.includes(data);
  const places = [...(data === undefined ? [] : [data]), ...(isUsual ? names : [])].map((name) =>
    join(root, name),
  );
  const found = places.find((place) => existsSync(place));
  if (found !== undefined) return found;
  const remote = dataset ?? (given === null ? known?.source : undefined);
  return (isUsual ? remote : undefined) ?? places[0]!;
}

/** Returns the path of another file of a suite: relative paths are in the folder of the data. */
export const placeInRoot = (path: string, { given, folder }: DataRoot): string =>
  isHubSource(path) || isAbsolute(path)
    ? path
    : join(given === null || isHubSource(given) ? folder : given, path);

/** The names of a task's folder, by preference: `mmlu_anatomy`, then `mmlu`. */
export function folderNames(task: string): readonly string[] {
  const words = task.split("_");
  return words.map((_, at) => words.slice(0, words.length - at).join("_"));
}
