import type { Tokenizer } from "@periodic-eval/core";

/** A token as text; of one that is part of a character, or that no text shows, its id in brackets. */
export interface ShownToken {
  readonly id: number;
  readonly text: string;
  /** Whether it is the tokenizer's own, as `<|im_end|>`, and no text. */
  readonly isSpecial: boolean;
}

/**
 * Each token as it stands behind the one before it: alone, a SentencePiece decoder would drop its leading space.
 *
 * @param before what stands before the first; null for nothing
 */
export function shownTokens(
  tokenizer: Tokenizer,
  ids: readonly number[],
  before: number | null = null,
): readonly ShownToken[] {
  return ids.map((id, at) => {
    const isSpecial =
      tokenizer.decode([id], { specialTokens: false }) === "" && tokenizer.decode([id]) !== "";
    return { id, text: textOf(tokenizer, id, at === 0 ? before : ids[at - 1]!), isSpecial };
  });
}

function textOf(tokenizer: Tokenizer, id: number, before: number | null): string {
  const [start, whole] = before === null ? ["", [id]] : [tokenizer.decode([before]), [before, id]];
  const both = tokenizer.decode(whole);
  const text = both.startsWith(start) ? both.slice(start.length) : "";
  return text === "" || text.includes("\ufffd") ? `[${id}]` : text;
}
