import { configError } from "@periodic-eval/contracts/options";
import type { Tokenizer, RenderedPrompt } from "@periodic-eval/core";
import { findMarked } from "@periodic-eval/data";
import type { Fault } from "./bad-row.ts";

/** Encodes a text and adds the tokenizer's end-of-sequence token, if it has one and the text does not end with it. */
export function encodeEnded(tokenizer: Tokenizer, text: string): readonly number[] {
  const ids = tokenizer.encode(text);
  const end = tokenizer.eosId ?? null;
  return end === null || ids.at(-1) === end ? ids : [...ids, end];
}

/**
 * Checks that the model has an embedding for every id. If not, the tokenizer belongs to another model.
 *
 * @throws PeriodicEvalError `config`.
 */
export function checkIds(where: string, ids: ArrayLike<number>, vocabSize: number): void {
  for (let at = 0; at < ids.length; at += 1) {
    const id = ids[at]!;
    if (id >= 0 && id < vocabSize) continue;
    throw configError({
      where,
      got: `the token ${id}`,
      expected: `ids from 0 to ${vocabSize - 1}, the model's vocabulary`,
      fix: "Use the tokenizer of this model.",
    });
  }
}

/** Reports a mark in a rendering: the templates of this repository read marks (`markNumbers`), those of other tokenizers write them. */
export function lostNumber(tokenizer: Tokenizer, { text, ids }: RenderedPrompt): Fault | null {
  const literal = findMarked(text ?? tokenizer.decode(ids));
  if (literal === null) return null;
  return {
    reason: "lost_number",
    got: `the number or key ${literal}, which this tokenizer cannot write as Python does; write it as a string or as an integer up to 2⁵³ − 1`,
  };
}
