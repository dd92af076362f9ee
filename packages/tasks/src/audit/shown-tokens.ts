import type { Tokenizer } from "@periodic-eval/core";

/** A token for display. */
export interface ShownToken {
  readonly id: number;
  /** The token's text, or its id in brackets for a part of a character or a token without text. */
  readonly text: string;
  /** Whether it is a special token such as `<|im_end|>`. */
  readonly isSpecial: boolean;
}

/**
 * Decodes each token after its predecessor, because a SentencePiece decoder drops the leading space of a single token.
 *
 * @param before The token before the first; null for none.
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
