import * as tf from "@tensorflow/tfjs-core";
import {
  type BulkTokenizer,
  type CallOptions,
  type LogLikelihood,
  type LogLikelihoodRequest,
  type NextToken,
  type NextTokenRequest,
  PeriodicEvalError,
} from "@periodic-eval/core";
import type { ForwardLimits } from "../batching/batches.ts";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import {
  furthest,
  scorePairs,
  scorePrompts,
  type FitLimits,
  type ScoredSequence,
} from "@periodic-eval/tokenizers";
import { windowLength, incrementalOf } from "../causal-lm/forward.ts";
import { isOnDevice } from "../batching/engine-memory.ts";
import type { Incremental } from "../causal-lm/incremental.ts";
import { refuseNaN } from "./device-scores.ts";
import { packByPrefix } from "./packing.ts";
import { scorePacked } from "./score-packed.ts";
import { scorePlain, type AllScores, type ScoreOptions } from "./score-plain.ts";
import { namedStream } from "@periodic-eval/core/random";

/**
 * Returns the log-likelihoods of continuations, batched by length. A context that exceeds the model's context length is cut on
 * the left but keeps at least its last token; `truncatedTokens` counts the tokens cut. For `isGreedy` a tie counts as most
 * likely.
 *
 * @throws PeriodicEvalError `data` for a continuation without tokens or longer than the context length; `model` for NaN logits;
 *   `aborted`.
 */
export function logLikelihoods(
  lm: CausalLM,
  tokenizer: BulkTokenizer,
  requests: readonly LogLikelihoodRequest[],
  { signal, countTokens }: CallOptions,
  limits: ForwardLimits,
): Promise<readonly LogLikelihood[]> {
  const withGreedyIds = requests.some(({ greedyIds }) => greedyIds === true);
  return scorePairs(tokenizer, requests, limitsOf(lm), { signal }, async (sequences) => {
    const options = { signal, limits, withEntropy: false, withGreedyIds };
    const { scores, tokens } = await scoreSequences(lm, sequences, options);
    countTokens?.(tokens);
    return scores;
  });
}

/**
 * Returns the log-probabilities of candidates for the token after each prompt, and the entropy of the whole distribution. A
 * prompt longer than the model's context length is cut on the left.
 *
 * @throws PeriodicEvalError `data` for a request without candidates; `model` for a candidate outside of the vocabulary and for
 *   NaN logits; `aborted`.
 */
export function nextToken(
  lm: CausalLM,
  tokenizer: BulkTokenizer,
  requests: readonly NextTokenRequest[],
  { signal, countTokens }: CallOptions,
  limits: ForwardLimits,
): Promise<readonly NextToken[]> {
  return scorePrompts(tokenizer, requests, limitsOf(lm), { signal }, async (sequences) => {
    const { scores, tokens } = await scoreSequences(lm, sequences, { signal, limits, withEntropy: true });
    countTokens?.(tokens);
    // A model that masks tokens with −∞ has no entropy here, because 0 · ∞ is NaN.
    return scores.map(({ nats, entropyNats: [entropy] }) => ({
      nats,
      entropyNats: Number.isNaN(entropy) ? null : entropy!,
    }));
  });
}

const limitsOf = (lm: CausalLM): FitLimits => ({ window: windowLength(lm), vocabSize: lm.vocabSize });

/**
 * Scores sequences with one download per batch: packed if the model reads incrementally, else one row per sequence.
 *
 * @throws PeriodicEvalError `model` for NaN logits, or if one row runs out of memory; `aborted`.
 */
export async function scoreSequences(
  lm: CausalLM,
  sequences: readonly ScoredSequence[],
  options: ScoreOptions,
): Promise<AllScores> {
  const incremental = incrementalOf(lm);
  const all =
    incremental === null
      ? await scorePlain(lm, sequences, options)
      : await scoreWithin(lm, incremental, sequences, options);
  for (const { nats } of all.scores) refuseNaN(nats);
  return all;
}

/**
 * Returns the share of tokens up to which packing is faster than plain scoring. Packing has costs for a mask per row and for
 * joining pieces. On wasm with the embedded model, 200 letters questions that share only a system prompt took 1.0 s packed and
 * 0.6 s plain; cloze questions 0.4 s and 0.75 s. Native TensorFlow on the CPU runs a block in one call and plain rows in two thousand.
 */
const maxReadShare = () => (tf.getBackend() === "tensorflow" && !isOnDevice() ? 1 : 2 / 3);

/** Scores packed up to the model's `reach`, and longer sequences whole. */
async function scoreWithin(
  lm: CausalLM,
  incremental: Incremental,
  sequences: readonly ScoredSequence[],
  options: ScoreOptions,
): Promise<AllScores> {
  const isWithin = sequences.map(({ ids }) => ids.length <= incremental.reach);
  const within = sequences.filter((_, index) => isWithin[index]);
  const packing = packByPrefix(within, options.limits.maxBatchTokens);
  const read = packing.packs.reduce((sum, { tokens }) => sum + tokens, packing.prefix);
  if (read > maxReadShare() * within.reduce((sum, { ids }) => sum + ids.length, 0))
    return scorePlain(lm, sequences, options);
  const packed = await scorePacked(lm, incremental, within, options, packing);
  if (within.length === sequences.length) return packed;
  const beyond = sequences.filter((_, index) => !isWithin[index]);
  const plain = await scorePlain(lm, beyond, options);
  const [ofPacked, ofPlain] = [packed.scores.values(), plain.scores.values()];
  return {
    scores: isWithin.map((is) => (is ? ofPacked : ofPlain).next().value!),
    tokens: packed.tokens + plain.tokens,
  };
}

/** Nats per token. Rounding changes scores by about 1e-5; a wrong mask or position by 1e-2 or more. */
const tolerance = 1e-3;

/**
 * Checks that packed scoring agrees with plain scoring, on two questions with two choices each, made of random tokens with a
 * fixed seed.
 *
 * @throws PeriodicEvalError `model` if a token's score differs by more than 1e-3 nats; `aborted`.
 */
export async function selfCheck(lm: CausalLM, limits: ForwardLimits, signal: AbortSignal): Promise<void> {
  const incremental = incrementalOf(lm);
  if (incremental === null) return;
  const sequences = questions(lm.vocabSize, Math.min(windowLength(lm), incremental.reach));
  const options = { signal, limits, withEntropy: false };
  const packed = await scorePacked(lm, incremental, sequences, options);
  const plain = await scorePlain(lm, sequences, options);
  const most = furthest(plain.scores, packed.scores);
  if (most <= tolerance) return;
  // Scores that do not repeat (dropout left on) are no fault of packing. The session's probe warns of them.
  if (furthest(plain.scores, (await scorePlain(lm, sequences, options)).scores) > tolerance) return;
  throw new PeriodicEvalError({
    code: "model",
    where: "inMemory scoring",
    got: `packed scores that differ from plain ones by up to ${most.toPrecision(2)} nats per token`,
    expected: `at most ${tolerance}`,
    fix: "Correct the model's `incremental` or its causal mask; without `incremental` every sequence is read alone.",
  });
}

function questions(vocabSize: number, longest: number): readonly ScoredSequence[] {
  const random = namedStream("self-check");
  const draw = (count: number) => Array.from({ length: count }, () => Math.floor(random() * vocabSize));
  // All four begin with the same tokens, like questions after the same few-shot examples.
  const lengths = longest < 18 ? [1, 2, 1] : [9, 6, 3];
  const [shared, context, choice] = lengths as [number, number, number];
  const start = draw(shared);
  return [draw(context), draw(context)].flatMap((middle) =>
    [draw(choice), draw(choice)].map((last) => ({
      ids: [...start, ...middle, ...last],
      picks: [...last.slice(0, 1), ...last].map((token) => [token]),
    })),
  );
}
