import type { Tokenizer } from "@periodic-eval/core";

/** A text, and the tokenizer's end-of-sequence token where it has one and the text does not end with it. */
export function encodeEnded(tokenizer: Tokenizer, text: string): readonly number[] {
  const ids = tokenizer.encode(text);
  const end = tokenizer.eosId ?? null;
  return end === null || ids.at(-1) === end ? ids : [...ids, end];
}

/** How many ids two lists begin with alike. */
export function sharedStart(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at += 1;
  return at;
}
