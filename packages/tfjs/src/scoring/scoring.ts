import type {
  CallOptions,
  LogLikelihood,
  LogLikelihoodRequest,
  NextToken,
  NextTokenRequest,
  Tokenizer,
} from "@periodic-eval/core";
import type { ForwardLimits } from "../batching/batches.ts";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { fitPair, fitPrompt, logLikelihoodOf, type FitLimits, mapInTurns } from "@periodic-eval/core/model";
import { windowLength } from "../causal-lm/forward.ts";
import { scoreSequences } from "./score-sequences.ts";

/**
 * Returns the log-likelihoods of continuations, batched by length. A context that exceeds the model's context length is cut on
 * the left but keeps at least its last token; `truncatedTokens` counts the tokens cut. For `isGreedy` a tie counts as most
 * likely.
 *
 * @throws PeriodicEvalError `data` for a continuation without tokens or longer than the context length; `model` for NaN logits;
 *   `aborted`.
 */
export async function logLikelihoods(
  lm: CausalLM,
  tokenizer: Tokenizer,
  requests: readonly LogLikelihoodRequest[],
  { signal, countTokens }: CallOptions,
  limits: ForwardLimits,
): Promise<readonly LogLikelihood[]> {
  const fitted = await mapInTurns(requests, { signal, where: "scoring" }, (request) =>
    fitPair(tokenizer, request, limitsOf(lm)),
  );
  const { scores, tokens } = await scoreSequences(lm, fitted, {
    signal,
    limits,
    withEntropy: false,
    withGreedyIds: requests.some(({ greedyIds }) => greedyIds === true),
  });
  countTokens?.(tokens);
  return requests.map((request, index) => logLikelihoodOf(request, fitted[index]!, scores[index]!));
}

/**
 * Returns the log-probabilities of candidates for the token after each prompt, and the entropy of the whole distribution. A
 * prompt longer than the model's context length is cut on the left.
 *
 * @throws PeriodicEvalError `data` for a request without candidates; `model` for a candidate outside of the vocabulary and for
 *   NaN logits; `aborted`.
 */
export async function nextToken(
  lm: CausalLM,
  tokenizer: Tokenizer,
  requests: readonly NextTokenRequest[],
  { signal, countTokens }: CallOptions,
  limits: ForwardLimits,
): Promise<readonly NextToken[]> {
  const prompts = await mapInTurns(requests, { signal, where: "scoring" }, (request) =>
    fitPrompt(tokenizer, request, limitsOf(lm)),
  );
  const { scores, tokens } = await scoreSequences(lm, prompts, { signal, limits, withEntropy: true });
  countTokens?.(tokens);
  return prompts.map(({ truncatedTokens }, index) => ({
    nats: scores[index]!.nats,
    // A model that masks tokens with −∞ has no entropy here, because 0 · ∞ is NaN.
    entropyNats: Number.isNaN(scores[index]!.entropyNats[0]!) ? null : scores[index]!.entropyNats[0]!,
    truncatedTokens,
  }));
}

const limitsOf = (lm: CausalLM): FitLimits => ({ window: windowLength(lm), vocabSize: lm.vocabSize });
