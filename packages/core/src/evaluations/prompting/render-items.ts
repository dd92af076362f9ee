import { PeriodicEvalError } from "../../errors.ts";
import { errorMessage } from "../../internal/error-message.ts";
import type { Abilities } from "../../contracts/model.ts";
import type { CompletionItem } from "./completions.ts";

/**
 * Renders every item, so that a chat template that fails on one is an error before step 1. Returns the text of the first item;
 * null for a model without a tokenizer.
 *
 * @param model A model whose evaluation wants the ability `tokenizer`.
 * @throws PeriodicEvalError `model`, naming the item or its persona.
 */
export function renderItems(
  model: object,
  items: readonly CompletionItem[],
  evaluation: string,
): string | null {
  const { tokenizer } = model as Partial<Abilities>;
  if (tokenizer === undefined) return null;
  const texts = items.map(({ id, persona, prompt }) => {
    try {
      return tokenizer.render(prompt, { ending: "generation" }).text;
    } catch (cause) {
      throw new PeriodicEvalError({
        code: "model",
        where: persona === null ? `${evaluation} question "${id}"` : `${evaluation} persona "${persona}"`,
        got: `a chat template that fails (${errorMessage(cause)})`,
        expected: "a template that renders its system prompt and a user turn",
        fix: "Choose another `system`, or remove the persona or the question.",
        cause,
      });
    }
  });
  return texts[0] ?? null;
}
