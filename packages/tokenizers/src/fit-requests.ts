import {
  type BulkOptions,
  type BulkTokenizer,
  type LogLikelihood,
  type LogLikelihoodRequest,
  type NextToken,
  type NextTokenRequest,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { encodePairs, quoteContinuation, renderPrompts } from "@periodic-eval/core/model";

/** A sequence, and the tokens to score at its last positions. */
export interface ScoredSequence {
  readonly ids: readonly number[];
  /** Token ids to score per scored position. The last scored position is the last token of the sequence. */
  readonly picks: readonly (readonly number[])[];
}

/** A sequence that fits the model's context length. */
interface FittedSequence extends ScoredSequence {
  /** Tokens cut from the left. */
  readonly truncatedTokens: number;
}

/** The scores of the tokens of a continuation. */
interface PairScores {
  readonly nats: readonly number[];
  readonly isTop: readonly boolean[];
  readonly greedyIds: readonly number[];
}

/** The scores of a prompt's candidates. */
type PromptScores = Omit<NextToken, "truncatedTokens">;

/** Limits of the sequences that a model reads. */
export interface FitLimits {
  /** The model's context length in tokens, or Infinity. */
  readonly window: number;
  /** Size of the model's vocabulary, or Infinity. */
  readonly vocabSize: number;
}

/**
 * Encodes continuations after their contexts, and returns their log-likelihoods from the scores of their tokens. A context that
 * exceeds the context length is cut on the left but keeps at least its last token.
 *
 * @param score Returns the scores of the sequences, in their order.
 * @throws PeriodicEvalError `data` for a continuation without tokens or longer than the context length; `model` for an id outside
 *   of the vocabulary.
 */
export async function scorePairs(
  tokenizer: BulkTokenizer,
  requests: readonly LogLikelihoodRequest[],
  { window, vocabSize }: FitLimits,
  options: BulkOptions,
  score: (sequences: readonly FittedSequence[]) => Promise<readonly PairScores[]>,
): Promise<readonly LogLikelihood[]> {
  const pairs = await encodePairs(tokenizer, requests, options);
  const fitted = pairs.map(({ context, continuation }, at) => {
    if (continuation.length > window)
      throw new PeriodicEvalError({
        code: "data",
        where: "logLikelihoods",
        got: `the continuation ${quoteContinuation(requests[at]!)} of ${continuation.length} tokens`,
        expected: `at most ${window} tokens, the model's context length`,
        fix: "Shorten or split the continuation: only contexts are cut.",
      });
    // The last token is scored but never read, so a context length of L allows L + 1 tokens.
    const truncatedTokens = Math.max(0, context.length + continuation.length - (window + 1));
    const ids = [...context.slice(truncatedTokens), ...continuation];
    checkIds(ids, vocabSize);
    return { ids: ids.slice(0, -1), picks: continuation.map((token) => [token]), truncatedTokens };
  });
  const scores = await score(fitted);
  return requests.map(({ greedyIds: isAsked = false }, at) => {
    const { nats, isTop, greedyIds } = scores[at]!;
    return {
      sumNats: nats.reduce((sum, value) => sum + value, 0),
      tokenNats: nats,
      isGreedy: isTop.every(Boolean),
      tokenIsGreedy: isTop,
      ...(isAsked && { tokenGreedyIds: greedyIds }),
      truncatedTokens: fitted[at]!.truncatedTokens,
    };
  });
}

/**
 * Encodes prompts, and returns the log-probabilities of candidates for the next token from their scores. A prompt longer than the
 * context length is cut on the left.
 *
 * @param score Returns the scores of the sequences, in their order.
 * @throws PeriodicEvalError `data` for a request without candidates; `model` for an id outside of the vocabulary.
 */
export async function scorePrompts(
  tokenizer: BulkTokenizer,
  requests: readonly NextTokenRequest[],
  { window, vocabSize }: FitLimits,
  options: BulkOptions,
  score: (sequences: readonly FittedSequence[]) => Promise<readonly PromptScores[]>,
): Promise<readonly NextToken[]> {
  const prompts = requests.map(({ prompt }) => prompt);
  const rendered = await renderPrompts(tokenizer, prompts, options);
  const fitted = requests.map(({ candidates }, at) => {
    const truncatedTokens = Math.max(0, rendered[at]!.ids.length - window);
    const ids = rendered[at]!.ids.slice(truncatedTokens);
    checkIds([...ids, ...candidates], vocabSize);
    if (candidates.length > 0) return { ids, picks: [candidates], truncatedTokens };
    throw new PeriodicEvalError({
      code: "data",
      where: "nextToken",
      got: "a request without candidates",
      expected: "at least one candidate token",
      fix: "Give the token ids whose probability you need.",
    });
  });
  const scores = await score(fitted);
  return fitted.map(({ truncatedTokens }, at) => ({ ...scores[at]!, truncatedTokens }));
}

/**
 * Checks token ids. For an id outside of the vocabulary, backends read beyond the embedding or wrap, without an error.
 *
 * @throws PeriodicEvalError `model` for an id outside of the vocabulary.
 */
export function checkIds(ids: readonly number[], vocabSize: number): void {
  const wrong = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
  if (wrong === undefined) return;
  throw new PeriodicEvalError({
    code: "model",
    where: "token ids",
    got: `the id ${wrong}`,
    expected: `an integer from 0 to ${vocabSize - 1}, the model's vocabulary`,
    fix: "Check that the tokenizer belongs to the model.",
  });
}

/** Returns the largest difference of scores of the same tokens, in nats. A diverged model returns NaN; its measurement reports that. */
export function furthest(
  a: readonly Pick<PairScores, "nats">[],
  b: readonly Pick<PairScores, "nats">[],
): number {
  const far = a.flatMap(({ nats }, index) => nats.map((value, at) => Math.abs(value - b[index]!.nats[at]!)));
  return Math.max(0, ...far.filter((value) => !Number.isNaN(value)));
}

/** Returns the length of the common beginning of two sequences, at most `atMost`. */
export function sharedLength(a: readonly number[], b: readonly number[], atMost: number): number {
  const most = Math.min(a.length, b.length, atMost);
  for (let at = 0; at < most; at++) if (a[at] !== b[at]) return at;
  return most;
}

/**
 * Groups rows of similar length, longest first, so that there is little padding and a batch that is too large for memory fails first.
 * A row that alone does not fit gets its own batch.
 *
 * @param fits Whether rows can be read together. Their indices are in descending order of length.
 * @returns Indices into `lengths`; each occurs once.
 */
export function groupByLength(
  lengths: readonly number[],
  fits: (batch: readonly number[]) => boolean,
): readonly (readonly number[])[] {
  const order = Array.from(lengths.keys()).sort((a, b) => lengths[b]! - lengths[a]! || a - b);
  const batches: number[][] = [];
  for (const index of order) {
    const batch = batches.at(-1);
    if (batch !== undefined && fits([...batch, index])) batch.push(index);
    else batches.push([index]);
  }
  return batches;
}
