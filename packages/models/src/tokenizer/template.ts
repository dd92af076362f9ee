import type { TemplateKwargs } from "@periodic-eval/core";
import { configError } from "@periodic-eval/contracts/options";
import { defaultDate, plainMessage, strftimeOn, type ChatTemplate } from "@periodic-eval/tokenizers";
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
    checkKwargs(kwargs);
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

function checkKwargs(kwargs: TemplateKwargs): void {
  const name = Object.keys(kwargs).find((one) => reserved.includes(one) || !/^[A-Za-z_]\w*$/.test(one));
  if (name === undefined) return;
  throw configError({
    where: "templateKwargs",
    path: [name],
    got: `the name ${JSON.stringify(name)}`,
    expected: `the name of a template variable other than ${reserved.join(", ")}`,
    fix: "Rename or remove it.",
  });
}
