import type { ChatOptions } from "@periodic-eval/tasks";
import type { Command } from "commander";
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
