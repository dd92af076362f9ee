import type { Abilities, Prompt } from "../../contracts/model.ts";

const opening = "<think>";
const closing = "</think>";

/**
 * What a thinking model says once it has thought: the text without its `<think>…</think>` blocks, also without one that
 * the chat template opened (a `</think>` with nothing before it that opens). Null where a block is left open: the
 * completion ended before there was an answer. A text without such marks comes back unchanged, unless the template is
 * known to have opened a block (`isOpened`, of `opensThinking`): all of it is then thought.
 */
export function stripThinking(
  text: string,
  { isOpened = false }: { readonly isOpened?: boolean } = {},
): string | null {
  const [open, close] = [text.indexOf(opening), text.indexOf(closing)];
  const isOpenedByTemplate = isOpened || (close >= 0 && (open < 0 || close < open));
  const whole = isOpenedByTemplate ? opening + text : text;
  const rest = whole.replaceAll(/<think>.*?<\/think>/gs, "");
  if (rest.includes(opening)) return null;
  return rest === text ? text : rest.trim();
}

/**
 * Whether the chat template opens a thought in its generation prompt, so that a completion begins inside it. False where
 * the model shows no tokenizer: a server renders the chat out of sight.
 *
 * @param model one whose evaluation wants the ability `tokenizer`
 */
export function opensThinking(model: object, prompt: Prompt): boolean {
  const { tokenizer } = model as Partial<Abilities>;
  return tokenizer?.render(prompt, { ending: "generation" }).text?.trimEnd().endsWith(opening) ?? false;
}
