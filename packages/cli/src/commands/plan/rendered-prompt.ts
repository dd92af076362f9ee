import type { AnyEvaluation, EvaluableModel, Tokenizer } from "@periodic-eval/core";
import { renderPrompt } from "@periodic-eval/core/evaluations";

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
export function firstPrompt(
  evaluation: AnyEvaluation,
  model: EvaluableModel,
  items: readonly unknown[],
): readonly DisplayToken[] | null {
  const { tokenizer } = model;
  const [prompt] = evaluation.prompts?.(model as never, items.slice(0, 1) as never) ?? [];
  if (prompt === undefined || tokenizer === undefined) return null;
  return displayTokens(tokenizer, renderPrompt(tokenizer, prompt).ids);
}

/** Decodes each token after its predecessor, because a SentencePiece decoder drops the leading space of a single token. */
export const displayTokens = (tokenizer: Tokenizer, ids: readonly number[]): readonly DisplayToken[] =>
  ids.map((id, at) => ({
    id,
    text: textOf(tokenizer, id, at === 0 ? [] : [ids[at - 1]!]),
    isSpecial: tokenizer.decode([id], { specialTokens: false }) === "" && tokenizer.decode([id]) !== "",
  }));

function textOf(tokenizer: Tokenizer, id: number, before: readonly number[]): string {
  const start = tokenizer.decode(before);
  const both = tokenizer.decode([...before, id]);
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
