import type { RenderedPrompt, Tokenizer } from "@periodic-eval/core";
import { findMarked } from "@periodic-eval/data";
import type { Fault } from "./bad-row.ts";

/** Reports a mark in a rendering: the templates of this repository read marks (`markNumbers`), those of other tokenizers write them. */
export function lostNumber(tokenizer: Tokenizer, { text, ids }: RenderedPrompt): Fault | null {
  const literal = findMarked(text ?? tokenizer.decode(ids));
  if (literal === null) return null;
  return {
    reason: "lost_number",
    got: `the number or key ${literal}, which this tokenizer cannot write as Python does; write it as a string or as an integer up to 2⁵³ − 1`,
  };
}
