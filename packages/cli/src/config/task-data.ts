import { PeriodicEvalError } from "@periodic-eval/core";
import { isHubSource, fixForMissing } from "@periodic-eval/data";
import { command } from "@periodic-eval/contracts/options";
import { datasetOf, folderNames } from "@periodic-eval/tasks";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";

/**
 * Returns the name of a task's folder in a data folder: the task's name or the longest prefix that exists (`truthfulqa` for
 * `truthfulqa_mc2`, `mmlu` for `mmlu_anatomy`). A dataset that is named instead, `hf:owner/dataset`, is returned as it is.
 *
 * @throws PeriodicEvalError `config` if no such folder exists.
 */
export function dataFolderOf(task: string, data: string): string {
  if (isHubSource(data)) return data;
  checkDataFolder(data, [task]);
  const names = folderNames(task);
  const found = names.find((name) => existsSync(join(data, name)));
  if (found !== undefined) return found;
  throw new PeriodicEvalError({
    code: "config",
    where: `--data ${data}`,
    got: `no folder for ${task}`,
    expected: names.map((name) => join(data, name)).join(" or "),
    fix: ["Pass the folder that contains one folder for each task.", ...fetchAdvice([task], data)].join(" "),
  });
}

/**
 * @param tasks The tasks whose data is needed: the error says how to get it.
 * @throws PeriodicEvalError `config` if the path is not a folder.
 */
export function checkDataFolder(data: string, tasks: readonly string[]): void {
  if (isHubSource(data) || (existsSync(data) && statSync(data).isDirectory())) return;
  throw new PeriodicEvalError({
    code: "config",
    where: "--data",
    got: data,
    expected: "an existing folder",
    fix: [fixForMissing(data, "Check the path."), ...fetchAdvice(tasks, data)].join(" "),
  });
}

/** Returns the commands that write the tasks' data into a folder, as a sentence; nothing for tasks without a known dataset. */
function fetchAdvice(tasks: readonly string[], data: string): readonly string[] {
  const names = [...new Set(tasks.flatMap((task) => datasetOf(task)?.name ?? []))];
  if (names.length === 0) return [];
  const commands = names.map((name) => command(`data get ${name} --out ${data}`)).join(", ");
  return [
    `Without --data it comes from the hub; ${commands} ${names.length === 1 ? "writes" : "write"} it there.`,
  ];
}
