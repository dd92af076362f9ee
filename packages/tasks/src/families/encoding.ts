import { PeriodicEvalError, type Row } from "@periodic-eval/core";
import type { Family } from "./family.ts";
import { textsFamily, type TextsItem, type TextsOptions, type TextsRow } from "./texts.ts";

export interface EncodingRow extends TextsRow {
  /** Tokens that were the most likely one at their place, ties included; null where too short. */
  readonly correct: number | null;
}

/**
 * Next-token prediction accuracy: the share of all scored tokens of the texts that the model would have written there
 * itself, greedily, with the true text before them. `accuracy` is Σ right / Σ tokens, so that a long text weighs more
 * than a short one; per text (`evaluate` with `reduce: "none"`) it is the text's own share. First tokens and long
 * texts as in `perplexityEvaluation`.
 *
 * @throws PeriodicEvalError `config` for a wrong option; `model`, when measured, for an engine that does not tell which
 *   tokens were the most likely.
 */
export function encodingEvaluation<D extends Row>(
  options: TextsOptions<D>,
): Family<D, TextsItem<D>, EncodingRow, "tokenizer" | "logLikelihoods"> {
  return textsFamily<D, Omit<EncodingRow, keyof TextsRow>>({
    where: "encodingEvaluation",
    options,
    own: [],
    judge({ id }, scores) {
      if (scores === null) return { correct: null };
      if (scores.isGreedy !== null) return { correct: scores.isGreedy.filter(Boolean).length };
      throw new PeriodicEvalError({
        code: "model",
        where: `${options.name} document "${id}"`,
        got: "log-likelihoods without `tokenIsGreedy`",
        expected: "an engine that tells of each token whether it was the most likely one",
        fix: "Measure a model in memory (`inMemory` of @periodic-eval/core/tfjs), or take `perplexityEvaluation`.",
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
