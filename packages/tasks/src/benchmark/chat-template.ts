import type { Message, Prompt, TemplateKwargs } from "@periodic-eval/core";
import * as z from "zod";

/** How tasks become chats. Both splits, in the loop and in the final test, use the same template. */
export interface BenchmarkChatTemplate {
  /**
   * The system message, `""` for an explicit empty one. Default: no system message is passed. A task whose messages begin with a
   * system message keeps that one.
   */
  readonly systemPrompt?: string;
  /** The user message, with `{prompt}` for a task's prompt or the last of its messages; default `{prompt}`. */
  readonly userTemplate?: string;
  /** Passed to the template as `enable_thinking`. Default: not passed. */
  readonly enableThinking?: boolean;
}

const hole = "{prompt}";

const withHole = `a string that contains ${hole}`;

/** Schemas of the options. */
export const chatTemplateShape = {
  systemPrompt: z.string().meta({ fix: "Leave it out for no system prompt." }).optional(),
  userTemplate: z
    .string(withHole)
    .includes(hole, withHole)
    .meta({ fix: "Mark where the task's prompt goes." })
    .optional(),
  enableThinking: z.boolean("true or false").meta({ fix: "Write it without quotes." }).optional(),
} satisfies Record<keyof BenchmarkChatTemplate, z.ZodType>;

type Chat = Extract<Prompt, { readonly messages: unknown }>;

/** Returns the chat of a task. */
export function chatOf(messages: readonly Message[], template: BenchmarkChatTemplate): Chat {
  const { systemPrompt, userTemplate = hole, enableThinking } = template;
  const applied = messages.map((message, at) =>
    at === messages.length - 1
      ? { ...message, content: userTemplate.split(hole).join(message.content) }
      : message,
  );
  const hasSystem = messages[0]?.role === "system";
  const templateKwargs: TemplateKwargs = { enable_thinking: enableThinking ?? null };
  return {
    messages: applied,
    ...(systemPrompt !== undefined && !hasSystem && { system: { text: systemPrompt } }),
    ...(enableThinking !== undefined && { templateKwargs }),
  };
}
