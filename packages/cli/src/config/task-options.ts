import type { ChatOptions } from "@periodic-eval/tasks";
import type { Command } from "commander";
import { wholeNumber } from "./command-options.ts";

/** How tasks are asked, said alike by every command that opens one. */
export interface TaskAsking {
  readonly shots?: number;
  readonly chat: boolean;
  readonly system: string;
}

export const addTaskOptions = (command: Command): Command =>
  command
    .option(
      "--shots <number>",
      "solved examples before each question (default: each task's own)",
      wholeNumber(0),
    )
    .option("--chat", "put the tasks' prompts into the model's chat template", false)
    .option("--system <text>", "system prompt of a chat: omit, empty, or a text", "omit");

/** Ends the command where a system prompt is said that no task has. */
export function checkSystem({ chat, system }: TaskAsking, command: Command): void {
  if (system !== "omit" && !chat)
    command.error("error: option '--system <text>' wants --chat: plain prompts have no system prompt");
  if (system === "no_system_block")
    command.error("error: option '--system no_system_block' is for --questions: say omit, empty or a text");
}

/** Null: plain text. */
export function chatOf({ chat, system }: TaskAsking): ChatOptions | null {
  if (!chat) return null;
  return system === "omit" ? {} : { system: system === "empty" ? "" : system };
}
