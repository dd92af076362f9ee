import { PeriodicEvalError, type Tokenizer } from "@periodic-eval/core";

/** A text, and the tokenizer's end-of-sequence token where it has one and the text does not end with it. */
export function encodeEnded(tokenizer: Tokenizer, text: string): readonly number[] {
  const ids = tokenizer.encode(text);
  const end = tokenizer.eosId ?? null;
  return end === null || ids.at(-1) === end ? ids : [...ids, end];
}

/**
 * @param vocabSize of the model
 * @throws PeriodicEvalError `config` for an id that the model has no row for: the tokenizer is another model's, and what is
 *   looked up there would be anything.
 */
export function checkIds(where: string, ids: ArrayLike<number>, vocabSize: number): void {
  for (let at = 0; at < ids.length; at += 1) {
    const id = ids[at]!;
    if (id >= 0 && id < vocabSize) continue;
    throw new PeriodicEvalError({
      code: "config",
      where,
      got: `the token ${id}`,
      expected: `ids from 0 to ${vocabSize - 1}, the model's vocabulary`,
      fix: "Give the tokenizer of this model.",
    });
  }
}

/** How many ids two lists begin with alike. */
export function sharedStart(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at += 1;
  return at;
}
