import {
  type PeriodicEvalError,
  type Json,
  type Metric,
  type MetricKit,
  type Row,
} from "@periodic-eval/core";
import { isRecord, modelError } from "@periodic-eval/contracts/options";
import type { AnyFamily, Family } from "./family.ts";
import { applyHooks, checkHooks, hooksMetric, hooksShape, type Hooks, type Scored } from "./hooks.ts";
import { textsFamily, type TextsItem, type TextsOptions, type TextsRow } from "./texts.ts";

export interface EncodingRow extends TextsRow {
  /** Number of tokens that were the most likely ones at their positions, ties included; null for `too_short`. */
  readonly correct: number | null;
}

/** A row of an evaluation with hooks. */
export interface PredictedRow extends TextsRow {
  /**
   * The most likely token in place of each scored token, after the true text before it, decoded: it begins at the text's second
   * token, or at its first if a token is put before the text. Null for `too_short`.
   */
  readonly predicted: string | null;
}

/** A prediction with the results of `clean` and of `check` or `score`. */
export interface ScoredPredictionRow<S extends Json = Json> extends PredictedRow, Scored<S> {}

/** Options with hooks, which receive the predicted text. */
export type EncodingOptions<D extends Row, S extends Json = boolean> = TextsOptions<D> & {
  /** Replaces the single metric `accuracy` (with `check`) or `score` (with `score`). */
  readonly metrics?: (
    kit: MetricKit<ScoredPredictionRow<S>>,
  ) => Readonly<Record<string, Metric<ScoredPredictionRow<S>>>>;
} & Hooks<D, S>;

type Needs = "tokenizer" | "logLikelihoods";

/** For errors. */
const where = "encodingEvaluation";

/**
 * Measures next-token predictions: at every token of a text, the most likely token after the true text before it, in one pass.
 *
 * Without hooks, `accuracy` is the share of scored tokens that were predicted: Σ right / Σ tokens over all texts, so long texts
 * weigh more than short ones. With hooks, each text is one answer, as in `rolloutEvaluation`: the predicted tokens as text →
 * `clean` → `check` or `score`.
 *
 *     encodingEvaluation({
 *       name: "last_word",
 *       documents: [{ id: "1", text: "The roofs in Cada are red" }],
 *       text: ({ text }) => text,
 *       clean: (predicted) => predicted.trim().split(" ").at(-1)!,
 *       check: ({ text }, word) => text.endsWith(` ${word}`),
 *     });
 *
 * First tokens and long texts are handled as in `perplexityEvaluation`.
 *
 * @throws PeriodicEvalError `config` for a wrong option; `model`, when measured, if the engine does not report which tokens
 *   were the most likely.
 */
export function encodingEvaluation<D extends Row>(
  options: TextsOptions<D> & { readonly check?: undefined; readonly score?: undefined },
): Family<D, TextsItem<D>, EncodingRow, Needs>;
export function encodingEvaluation<D extends Row, S extends Json = boolean>(
  options: EncodingOptions<D, S>,
): Family<D, TextsItem<D>, PredictedRow, Needs, ScoredPredictionRow<S>>;
export function encodingEvaluation<D extends Row, S extends Json>(
  options: TextsOptions<D> | EncodingOptions<D, S>,
): AnyFamily {
  const hasHooks = isRecord(options) && Object.keys(hooksShape).some((hook) => options[hook] !== undefined);
  return hasHooks ? textFamily(options as EncodingOptions<D, S>) : tokenFamily(options);
}

function tokenFamily<D extends Row>(options: TextsOptions<D>): Family<D, TextsItem<D>, EncodingRow, Needs> {
  return textsFamily<D, Omit<EncodingRow, keyof TextsRow>>({
    where,
    options,
    // The options may hold hooks that are undefined.
    ownShape: hooksShape,
    judge(item, scores) {
      if (scores === null) return { correct: null };
      if (scores.isGreedy === null) throw unknownTokens(options, item, "tokenIsGreedy");
      return { correct: scores.isGreedy.filter(Boolean).length };
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

function textFamily<D extends Row, S extends Json>(
  options: EncodingOptions<D, S>,
): Family<D, TextsItem<D>, PredictedRow, Needs, ScoredPredictionRow<S>> {
  checkHooks(where, options);
  return textsFamily<D, Omit<PredictedRow, keyof TextsRow>, ScoredPredictionRow<S>>({
    where,
    options,
    ownShape: hooksShape,
    needsPredicted: true,
    judge(item, scores) {
      if (scores === null) return { predicted: null };
      if (scores.predicted === null) throw unknownTokens(options, item, "tokenGreedyIds");
      return { predicted: scores.predicted };
    },
    grade:
      (documentOf) =>
      (rows, { signal }) =>
        applyHooks(
          rows,
          { where, task: options.name, hooks: options, documentOf, textOf: ({ predicted }) => predicted },
          signal,
        ),
    metrics: options.metrics ?? hooksMetric(where, options),
  });
}

function unknownTokens(
  { name }: { readonly name: string },
  { id }: Row,
  field: "tokenIsGreedy" | "tokenGreedyIds",
): PeriodicEvalError {
  return modelError(
    `${name} document "${id}"`,
    `log-likelihoods without \`${field}\``,
    field === "tokenIsGreedy"
      ? "an engine that reports whether each token was the most likely one"
      : "an engine that reports the most likely token at each position",
    "Measure a model in memory (`inMemory` of @periodic-eval/tfjs), or use `perplexityEvaluation`.",
  );
}
