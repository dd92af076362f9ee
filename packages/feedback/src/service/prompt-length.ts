import type { EvaluableModel } from "@periodic-eval/core";
import { charactersPerToken } from "@periodic-eval/core/internal";
import { refused } from "./refusals.ts";

/**
 * Checks the length of a text before the tokenizer reads it, which takes seconds per megabyte.
 *
 * @param name Where the text stands in the request.
 * @throws HTTPException 413 for more than 64 characters per token of the context length.
 */
export function checkLength({ contextLength }: EvaluableModel, name: string, text: string): void {
  const most = charactersPerToken * (contextLength ?? Infinity);
  if (text.length <= most) return;
  throw refused(413, "prompt_too_long", {
    where: name,
    got: `${text.length} characters`,
    expected: `at most ${most}: the model reads ${contextLength} tokens`,
    fix: "Shorten the text.",
  });
}
