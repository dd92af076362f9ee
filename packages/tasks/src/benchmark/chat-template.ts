import { PeriodicEvalError, type Message, type Prompt, type TemplateKwargs } from "@periodic-eval/core";
import { checkKeys, quoteValue } from "@periodic-eval/core/internal";

/** How tasks become chats: one block for the split that is looked at in the loop and for the final test. */
export interface BenchmarkChatTemplate {
  /**
   * The text of the system message, `""` for an explicit empty one; left out: none is passed. A task whose messages begin
   * with the system's keeps its own.
   */
  readonly systemPrompt?: string;
  /** What the user says, with `{prompt}` for a task's prompt or the last of its messages; default `{prompt}`. */
  readonly userTemplate?: string;
  /** Given to the template as `enable_thinking`; left out: not given. */
  readonly enableThinking?: boolean;
}

const hole = "{prompt}";

/** @throws PeriodicEvalError `config` at `where` for a wrong option. */
export function checkChatTemplate(where: string, template: BenchmarkChatTemplate): void {
  checkKeys(where, template, ["systemPrompt", "userTemplate", "enableThinking"]);
  const { systemPrompt = "", userTemplate = hole, enableThinking = true } = template;
  const wrong = (option: string, got: unknown, expected: string, fix: string) =>
    new PeriodicEvalError({
      code: "config",
      where: `${where}.${option}`,
      got: quoteValue(got),
      expected,
      fix,
    });
  if (typeof systemPrompt !== "string")
    throw wrong("systemPrompt", systemPrompt, "a text", "Leave it out where there is none.");
  if (typeof userTemplate !== "string" || !userTemplate.includes(hole))
    throw wrong("userTemplate", userTemplate, `a text with ${hole} in it`, "Say where the task stands.");
  if (typeof enableThinking !== "boolean")
    throw wrong("enableThinking", enableThinking, "true or false", "Write it without quotes.");
}

type Chat = Extract<Prompt, { readonly messages: unknown }>;

export function chatOf(messages: readonly Message[], template: BenchmarkChatTemplate): Chat {
  const { systemPrompt, userTemplate = hole, enableThinking } = template;
  const asked = messages.map((message, at) =>
    at === messages.length - 1
      ? { ...message, content: userTemplate.split(hole).join(message.content) }
      : message,
  );
  const hasOwn = messages[0]?.role === "system";
  const templateKwargs: TemplateKwargs = { enable_thinking: enableThinking ?? null };
  return {
    messages: asked,
    ...(systemPrompt !== undefined && !hasOwn && { system: { text: systemPrompt } }),
    ...(enableThinking !== undefined && { templateKwargs }),
  };
}
