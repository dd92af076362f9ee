import { PeriodicEvalError, type Message, type Prompt, type TemplateKwargs } from "@periodic-eval/core";
import { checkPrompt } from "@periodic-eval/core/model";

/** A prompt in the form that a server receives. The server renders the chat. */
export interface ServedChat {
  /** Messages. A system prompt is the first one. */
  readonly messages: readonly Message[];
  /** Null if the prompt has none. */
  readonly templateKwargs: TemplateKwargs | null;
}

/**
 * Returns the messages and template variables of a prompt.
 *
 * @throws PeriodicEvalError `model` for a prompt that only a model in memory accepts: plain text, token ids, or a chat that
 *   must have no system block.
 */
export function chatOf(where: string, prompt: Prompt): ServedChat {
  checkPrompt(prompt, where);
  if (!("messages" in prompt))
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: "text" in prompt ? "a prompt of plain text" : "a prompt of token ids",
      expected: "messages, because the server renders the chat",
      fix: "Send messages.",
    });
  const { messages, system = "omit", templateKwargs = {} } = prompt;
  if (system === "no_system_block")
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: 'the system prompt "no_system_block"',
      expected: '"omit" or { text }: the server renders the chat and does not report what its template adds',
      fix: 'Write "omit", or measure the model in memory.',
    });
  return {
    messages: typeof system === "object" ? [{ role: "system", content: system.text }, ...messages] : messages,
    templateKwargs: Object.keys(templateKwargs).length === 0 ? null : templateKwargs,
  };
}

/** Returns the error for template variables that the API does not accept. */
export function templateKwargsError(where: string, kwargs: TemplateKwargs, api: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "model",
    where,
    got: `chat template variables (${Object.keys(kwargs).join(", ")})`,
    expected: `none, because ${api} does not accept them`,
    fix: "Remove chatTemplate.kwargs, or measure through a server that accepts chat_template_kwargs, such as vLLM.",
  });
}
