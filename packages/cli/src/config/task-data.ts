import { PeriodicEvalError } from "@periodic-eval/core";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";

/**
 * The folder of a task's documents in a folder of several: of the task's name, or of what its name begins with
 * (`truthfulqa` for `truthfulqa_mc2`, `mmlu` for `mmlu_anatomy`).
 *
 * @throws PeriodicEvalError `config` where there is none.
 */
export function dataFolderOf(task: string, data: string): string {
  const words = task.split("_");
  const names = words.map((_, at) => words.slice(0, words.length - at).join("_"));
  const found = names.find((name) => existsSync(join(data, name)));
  if (found !== undefined) return found;
  throw new PeriodicEvalError({
    code: "config",
    where: `--data ${data}`,
    got: "no folder for the task",
    expected: names.map((name) => join(data, name)).join(" or "),
    fix: "Name the folder that has one folder for each task.",
  });
}

/** @throws PeriodicEvalError `config` for what is no folder. */
export function checkDataFolder(data: string): void {
  if (existsSync(data) && statSync(data).isDirectory()) return;
  throw new PeriodicEvalError({
    code: "config",
    where: "--data",
    got: data,
    expected: "a folder that is there",
    fix: "Check the path.",
  });
}
