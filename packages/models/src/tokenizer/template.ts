import {
  checkTemplateKwargs,
  defaultDate,
  plainMessage,
  strftimeOn,
  type ChatTemplate,
} from "@periodic-eval/tokenizers";
import type { Input } from "../jinja/input.ts";
import { compileTemplate as compileJinja } from "../jinja/template.ts";

/** Variables of a template besides the messages, such as `bos_token`. */
export type TemplateVariables = Readonly<Record<string, string>>;

/**
 * Compiles a chat template as transformers does, except that `strftime_now` uses `date` instead of the clock. The template
 * `documents` come from the kwargs. Errors that the template raises are thrown unchanged.
 */
export function compileTemplate(
  source: string,
  variables: TemplateVariables,
  date = defaultDate,
): ChatTemplate {
  const render = compileJinja(source, strftimeOn(date));
  return ({ messages, addGenerationPrompt, tools = null, kwargs = {} }) => {
    checkTemplateKwargs(kwargs, reserved);
    return render({
      documents: null,
      ...variables,
      ...kwargs,
      messages: messages.map((message): Input => ({ ...plainMessage(message) })),
      tools,
      add_generation_prompt: addGenerationPrompt,
    });
  };
}

/** Variables that the chat sets. */
const reserved = ["messages", "add_generation_prompt", "tools"];
