import type { Abilities, Prompt } from "../../contracts/model.ts";

const opening = "<think>";
const closing = "</think>";

/**
 * Returns a completion without its `<think>…</think>` blocks, including one that the chat template opened (a `</think>`
 * without an opening tag before it). Returns null where a block is not closed: the completion ended before its answer.
 * A completion without such tags is returned unchanged, unless `isOpened` says that the template opened a block (see
 * `opensThinking`): then all of it is thinking.
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
 * Whether the chat template opens a thinking block in its generation prompt, so that a completion starts inside it. False
 * for a model without a tokenizer: a server renders the chat itself.
 *
 * @param model A model whose evaluation wants the ability `tokenizer`.
 */
export function opensThinking(model: object, prompt: Prompt): boolean {
  const { tokenizer } = model as Partial<Abilities>;
  return tokenizer?.render(prompt, { ending: "generation" }).text?.trimEnd().endsWith(opening) ?? false;
}
