import type { AnyEvaluation, BulkTokenizer, EvaluableModel } from "@periodic-eval/core";
import { renderPrompts } from "@periodic-eval/core/evaluations";

/** A token for display. */
export interface DisplayToken {
  readonly id: number;
  /** The token's text, or its id in brackets for a part of a character or a token without text. */
  readonly text: string;
  /** Whether it is a special token such as `<|im_end|>`. */
  readonly isSpecial: boolean;
}

/**
 * Returns the first prompt of an evaluation as the model's tokenizer and chat template render it, token by token; null for an
 * evaluation without prompts. Needs no weights.
 *
 * @param items The evaluation's items.
 * @throws PeriodicEvalError if the template fails.
 */
export async function firstPrompt(
  evaluation: AnyEvaluation,
  model: EvaluableModel,
  items: readonly unknown[],
): Promise<readonly DisplayToken[] | null> {
  const { tokenizer } = model;
  const [prompt] = (await evaluation.prompts?.(model as never, items.slice(0, 1) as never)) ?? [];
  if (prompt === undefined || tokenizer === undefined) return null;
  const [rendered] = await renderPrompts(tokenizer, [prompt]);
  return displayTokens(tokenizer, rendered!.ids);
}

/** Decodes each token after its predecessor, because a SentencePiece decoder drops the leading space of a single token. */
export async function displayTokens(
  tokenizer: BulkTokenizer,
  ids: readonly number[],
): Promise<readonly DisplayToken[]> {
  const before = ids.map((_, at) => (at === 0 ? [] : [ids[at - 1]!]));
  const alone = ids.map((id) => [id]);
  const plain = await tokenizer.decode(alone, { specialTokens: false });
  const texts = await tokenizer.decode([...alone, ...before, ...ids.map((id, at) => [...before[at]!, id])]);
  return ids.map((id, at) => ({
    id,
    text: textOf(id, texts[ids.length + at]!, texts[2 * ids.length + at]!),
    isSpecial: plain[at] === "" && texts[at] !== "",
  }));
}

/** Returns the text of a token from the text of the token before it, and of both. */
function textOf(id: number, start: string, both: string): string {
  const text = both.startsWith(start) ? both.slice(start.length) : "";
  return text === "" || text.includes("\ufffd") ? `[${id}]` : text;
}

/** Joins tokens with bars. A line feed is shown as ⏎ and also breaks the line. */
export const promptText = (
  tokens: readonly DisplayToken[],
  paint: Readonly<Record<"special" | "bar", (text: string) => string>>,
): string =>
  tokens
    .map(({ text, isSpecial }) => (isSpecial ? paint.special(text) : text.replaceAll("\n", "⏎\n")))
    .join(paint.bar("│"));
