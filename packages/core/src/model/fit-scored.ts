import {
  type LogLikelihood,
  type LogLikelihoodRequest,
  type NextTokenRequest,
  type Tokenizer,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { checkIds } from "./check-ids.ts";
import { encodePair, encodePrompt, quoteContinuation } from "./encode-pair.ts";

/** A sequence that fits the model's context length, and the tokens to score at its last positions. */
export interface FittedSequence {
  readonly ids: readonly number[];
  /** Token ids to score per scored position. The last scored position is the last token of the sequence. */
  readonly picks: readonly (readonly number[])[];
  /** Tokens cut from the left. */
  readonly truncatedTokens: number;
}

/** Limits of the sequences that a model reads. */
export interface FitLimits {
  /** The model's context length in tokens, or Infinity. */
  readonly window: number;
  /** Size of the model's vocabulary, or Infinity. */
  readonly vocabSize: number;
}

/**
 * Encodes a continuation after its context. A context that exceeds the context length is cut on the left but keeps at least its
 * last token.
 *
 * @throws PeriodicEvalError `data` for a continuation without tokens or longer than the context length; `model` for an id outside
 *   of the vocabulary.
 */
export function fitPair(
  tokenizer: Tokenizer,
  request: LogLikelihoodRequest,
  { window, vocabSize }: FitLimits,
): FittedSequence {
  const { context, continuation } = encodePair(tokenizer, request);
  if (continuation.length > window)
    throw new PeriodicEvalError({
      code: "data",
      where: "logLikelihoods",
      got: `the continuation ${quoteContinuation(request)} of ${continuation.length} tokens`,
      expected: `at most ${window} tokens, the model's context length`,
      fix: "Shorten or split the continuation: only contexts are cut.",
    });
  // The last token is scored but never read, so a context length of L allows L + 1 tokens.
  const truncatedTokens = Math.max(0, context.length + continuation.length - (window + 1));
  const ids = [...context.slice(truncatedTokens), ...continuation];
  checkIds(ids, vocabSize);
  return { ids: ids.slice(0, -1), picks: continuation.map((token) => [token]), truncatedTokens };
}

/**
 * Encodes a prompt whose next token is scored. A prompt longer than the context length is cut on the left.
 *
 * @throws PeriodicEvalError `data` for a request without candidates; `model` for an id outside of the vocabulary.
 */
export function fitPrompt(
  tokenizer: Tokenizer,
  { prompt, candidates }: NextTokenRequest,
  { window, vocabSize }: FitLimits,
): FittedSequence {
  const whole = encodePrompt(tokenizer, prompt);
  const truncatedTokens = Math.max(0, whole.length - window);
  const ids = whole.slice(truncatedTokens);
  checkIds([...ids, ...candidates], vocabSize);
  if (candidates.length > 0) return { ids, picks: [candidates], truncatedTokens };
  throw new PeriodicEvalError({
    code: "data",
    where: "nextToken",
    got: "a request without candidates",
    expected: "at least one candidate token",
    fix: "Give the token ids whose probability you need.",
  });
}

/** The scores of the tokens of a continuation. */
interface PairScores {
  readonly nats: readonly number[];
  readonly isTop: readonly boolean[];
  readonly greedyIds: readonly number[];
}

/** Returns the answer to a request from its scores. */
export const logLikelihoodOf = (
  { greedyIds: isAsked = false }: LogLikelihoodRequest,
  { truncatedTokens }: FittedSequence,
  { nats, isTop, greedyIds }: PairScores,
): LogLikelihood => ({
  sumNats: nats.reduce((sum, value) => sum + value, 0),
  tokenNats: nats,
  isGreedy: isTop.every(Boolean),
  tokenIsGreedy: isTop,
  ...(isAsked && { tokenGreedyIds: greedyIds }),
  truncatedTokens,
});
