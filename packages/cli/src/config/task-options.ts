import type { ChatOptions } from "@periodic-eval/tasks";
import type { Command } from "commander";

/** How a command prompts tasks. */
export interface TaskPromptOptions {
  readonly chat: boolean;
  readonly system: string;
}

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
