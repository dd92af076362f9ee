import { PeriodicEvalError, type Row } from "@periodic-eval/core";
import type { Family } from "./family.ts";
import { textsFamily, type TextsItem, type TextsOptions, type TextsRow } from "./texts.ts";

export interface EncodingRow extends TextsRow {
  /** Number of tokens that were the most likely ones at their positions, ties included; null for `too_short`. */
  readonly correct: number | null;
}

/**
 * Measures next-token prediction accuracy: the share of scored tokens that greedy decoding would produce after the true text
 * before them. `accuracy` is Σ right / Σ tokens over all texts, so long texts weigh more than short ones; with `evaluate` and
 * `reduce: "none"` it is the share per text. First tokens and long texts are handled as in `perplexityEvaluation`.
 *
 * @throws PeriodicEvalError `config` for a wrong option; `model`, when measured, if the engine does not report which tokens
 *   were the most likely.
 */
export function encodingEvaluation<D extends Row>(
  options: TextsOptions<D>,
): Family<D, TextsItem<D>, EncodingRow, "tokenizer" | "logLikelihoods"> {
  return textsFamily<D, Omit<EncodingRow, keyof TextsRow>>({
    where: "encodingEvaluation",
    options,
    ownShape: {},
    judge({ id }, scores) {
      if (scores === null) return { correct: null };
      if (scores.isGreedy !== null) return { correct: scores.isGreedy.filter(Boolean).length };
      throw new PeriodicEvalError({
        code: "model",
        where: `${options.name} document "${id}"`,
        got: "log-likelihoods without `tokenIsGreedy`",
        expected: "an engine that reports whether each token was the most likely one",
        fix: "Measure a model in memory (`inMemory` of @periodic-eval/core/tfjs), or use `perplexityEvaluation`.",
      });
    },
    metrics: ({ ratio }) => ({
      accuracy: ratio(({ correct, tokens }) => (correct === null ? null : [correct, tokens]), {
        higherIsBetter: true,
        unit: "share",
        range: [0, 1],
      }),
    }),
  });
}
