import type { Json } from "@periodic-eval/core";
import type { JudgePrice } from "@periodic-eval/core/grading";
import type { BenchmarkRow } from "./types.ts";

/**
 * What the completions took. `unknown` counts those of which neither server nor tokenizer tells; tokens are then those of
 * the others, and there is no cost.
 */
export function usageOf(
  rows: readonly BenchmarkRow[],
  price: JudgePrice | null,
): { readonly [key: string]: Json } {
  const all = rows.flatMap(({ completions }) => completions);
  const told = all.filter(({ inputTokens, outputTokens }) => inputTokens !== null && outputTokens !== null);
  const inputTokens = sum(told.map((one) => one.inputTokens!));
  const outputTokens = sum(told.map((one) => one.outputTokens!));
  const unknown = all.length - told.length;
  const isKnown = price !== null && unknown === 0;
  return {
    completions: all.length,
    unknown,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cost: isKnown
      ? (inputTokens * price.inputPerMillion + outputTokens * price.outputPerMillion) / 1e6
      : null,
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
