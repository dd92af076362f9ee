import { PeriodicEvalError } from "@periodic-eval/core";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";

/**
 * Returns the name of a task's folder in a data folder: the task's name or the longest prefix that exists (`truthfulqa` for
 * `truthfulqa_mc2`, `mmlu` for `mmlu_anatomy`).
 *
 * @throws PeriodicEvalError `config` if no such folder exists.
 */
export function dataFolderOf(task: string, data: string): string {
  const words = task.split("_");
  const names = words.map((_, at) => words.slice(0, words.length - at).join("_"));
  const found = names.find((name) => existsSync(join(data, name)));
  if (found !== undefined) return found;
  throw new PeriodicEvalError({
    code: "config",
    where: `--data ${data}`,
    got: `no folder for ${task}`,
    expected: names.map((name) => join(data, name)).join(" or "),
    fix: "Pass the folder that contains one folder for each task.",
  });
}

/** @throws PeriodicEvalError `config` if the path is not a folder. */
export function checkDataFolder(data: string): void {
  if (existsSync(data) && statSync(data).isDirectory()) return;
  throw new PeriodicEvalError({
    code: "config",
    where: "--data",
    got: data,
    expected: "an existing folder",
    fix: "Check the path.",
  });
}
