import { PeriodicEvalError } from "@periodic-eval/core";
import type { ChatOptions } from "@periodic-eval/tasks";
import type { Command } from "commander";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { integer } from "./command-options.ts";

/** How a command prompts tasks. */
export interface TaskPromptOptions {
  readonly shots?: number;
  readonly chat: boolean;
  readonly system: string;
}

export const addTaskPromptOptions = (command: Command): Command =>
  command
    .option(
      "--shots <number>",
      "few-shot examples before each question (default: the task's own)",
      integer(0),
    )
    .option("--chat", "render the tasks' prompts with the model's chat template", false)
    .option("--system <text>", "system prompt of a chat: omit, empty, or the prompt", "omit");

/** Ends the command if a system prompt is given that tasks cannot use. */
export function checkSystemPrompt({ chat, system }: TaskPromptOptions, command: Command): void {
  if (system !== "omit" && !chat)
    command.error("error: option '--system <text>' requires --chat: plain prompts have no system prompt");
  if (system === "no_system_block")
    command.error(
      "error: option '--system no_system_block' is only for --questions: pass omit, empty or the prompt",
    );
}

/** Returns the chat options of a task, or null for plain text. */
export function chatOptions({ chat, system }: TaskPromptOptions): ChatOptions | null {
  if (!chat) return null;
  return system === "omit" ? {} : { system: system === "empty" ? "" : system };
}

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
