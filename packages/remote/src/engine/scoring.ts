import type {
  BulkTokenizer,
  CallOptions,
  LogLikelihood,
  LogLikelihoodRequest,
  NextToken,
  NextTokenRequest,
  PeriodicEvalError,
} from "@periodic-eval/core";
import { scorePairs, scorePrompts as scoreNext } from "@periodic-eval/tokenizers";
import pLimit from "p-limit";
import { failedAttemptOf, withAdvice } from "../http/json-service.ts";
import { trackCall, type TrackedCall } from "../http/track-requests.ts";
import type { Replica, Target } from "./pool.ts";
import {
  checkPromptIds,
  choicesOf,
  neutralSampling,
  scoredTokens,
  topLogProbs,
  type ScoredToken,
} from "./wire.ts";

/** A sequence, and how many of its last tokens are scored. */
interface Sequence {
  readonly ids: readonly number[];
  readonly count: number;
}

/** Limits of one request, so that its reply stays small and a lost one costs little. */
const maxSequences = 16;
const maxTokens = 4096;

/** The request for the log-probabilities of prompts. Its one generated token is not used: servers require it. */
export const scoreBody = (model: string, prompts: readonly (readonly number[])[]) => ({
  model,
  prompt: prompts,
  max_tokens: 1,
  temperature: 0,
  ...neutralSampling,
  // The most likely token too, because a token's rank alone does not show a tie.
  prompt_logprobs: 1,
  return_token_ids: true,
});

/** Scores prompts with one request to one replica. */
export async function scorePrompts(
  replica: Replica,
  { where, name, isAdapter }: Pick<Target, "where" | "name" | "isAdapter">,
  sequences: readonly Sequence[],
  signal: AbortSignal,
): Promise<readonly (readonly ScoredToken[])[]> {
  const body = scoreBody(
    name,
    sequences.map(({ ids }) => ids),
  );
  const reply = await replica.service.ask("v1/completions", body, signal);
  const choices = choicesOf(reply, { count: sequences.length, model: name, isAdapter }, where);
  return sequences.map(({ ids, count }, index) => scoredTokens(choices[index], ids, count, where));
}

/** Scores sequences on all replicas, several with each request. */
async function scoreAll(
  target: Target,
  sequences: readonly Sequence[],
  { signal, countTokens, send }: TrackedCall,
): Promise<readonly (readonly ScoredToken[])[]> {
  const groups = groupsOf(sequences, target.pool.free);
  const answers = await inOrder(target, groups, async (group) => {
    const scores = await send(() =>
      target.run(signal, (replica) => scorePrompts(replica, target, group, signal)),
    ).catch((error: unknown) => {
      throw withScoringFix(error);
    });
    countTokens?.(group.reduce((sum, { ids }) => sum + ids.length + 1, 0));
    return scores;
  });
  return answers.flat();
}

/** Adds the remedy for vLLM's engine that dies while it scores several prompts with a trainable head. */
export function withScoringFix(error: unknown): unknown {
  const failed = failedAttemptOf(error);
  if (failed === null || !failed.mayRetry || (failed.status !== null && failed.status < 500)) return error;
  return withAdvice(
    error as PeriodicEvalError,
    "If vLLM's engine died and was started with --enable-lora, add --lora-target-modules with all modules of your adapters but without lm_head.",
  );
}

/** Keeps the queue of the pool short, so that other calls get their turns. */
export const inOrder = <Q, A>(
  { pool }: Target,
  requests: readonly Q[],
  work: (request: Q) => Promise<A>,
): Promise<A[]> => pLimit(pool.capacity).map(requests, work);

/** Cuts sequences into groups for one request each, small enough that no replica idles. */
function groupsOf(sequences: readonly Sequence[], free: number): readonly (readonly Sequence[])[] {
  const most = Math.min(maxSequences, Math.ceil(sequences.length / free));
  const groups: Sequence[][] = [];
  let tokens = 0;
  for (const sequence of sequences) {
    const group = groups.at(-1);
    tokens += sequence.ids.length;
    if (group !== undefined && group.length < most && tokens <= maxTokens) group.push(sequence);
    else {
      groups.push([sequence]);
      tokens = sequence.ids.length;
    }
  }
  return groups;
}

/** Returns the log-likelihoods of continuations, from prompt log-probs over the same token ids as `inMemory` uses. */
export const logLikelihoods = (
  target: Target,
  tokenizer: BulkTokenizer,
  requests: readonly LogLikelihoodRequest[],
  options: CallOptions,
): Promise<readonly LogLikelihood[]> =>
  trackCall(options, (call) =>
    scorePairs(tokenizer, requests, target.limits, { signal: call.signal }, async (fitted) => {
      const sequences = fitted.map(({ ids, picks }) => ({
        ids: [...ids, picks.at(-1)![0]!],
        count: picks.length,
      }));
      const scores = await scoreAll(target, sequences, call);
      return scores.map((tokens) => ({
        nats: tokens.map(({ nats }) => nats),
        isTop: tokens.map(({ isTop }) => isTop),
        greedyIds: tokens.map(({ greedyId }) => greedyId),
      }));
    }),
  );

/**
 * Returns the log-probabilities of candidates after each prompt: from the log-probs that the server returns for the next
 * token, and by prompt log-probs for candidates that are not among them.
 */
export const nextToken = (
  target: Target,
  tokenizer: BulkTokenizer,
  requests: readonly NextTokenRequest[],
  options: CallOptions,
): Promise<readonly NextToken[]> =>
  trackCall(options, (call) =>
    scoreNext(tokenizer, requests, target.limits, { signal: call.signal }, async (fitted) => {
      const known = await inOrder(target, fitted, ({ ids }) => knownLogProbs(target, ids, call));
      const missing = fitted.flatMap(({ ids, picks }, index) =>
        [...new Set(picks[0])].flatMap((id) =>
          known[index]!.has(id) ? [] : [{ index, id, ids: [...ids, id], count: 1 }],
        ),
      );
      const scores = await scoreAll(target, missing, call);
      missing.forEach(({ index, id }, at) => known[index]!.set(id, scores[at]![0]!.nats));
      return fitted.map(({ picks }, index) => ({
        nats: picks[0]!.map((id) => known[index]!.get(id)!),
        entropyNats: null,
      }));
    }),
  );

/** vLLM's `logprob_token_ids` would name the candidates, but spoils the log-probs of other requests in its batch (0.32). */
async function knownLogProbs(
  target: Target,
  ids: readonly number[],
  { signal, countTokens, send }: TrackedCall,
): Promise<Map<number, number>> {
  const { topCount, where, name, isAdapter } = target;
  if (topCount === 0) return new Map();
  const reply = await send(() =>
    target.run(signal, ({ service }) => service.ask("v1/completions", nextBody(name, ids, topCount), signal)),
  );
  const [choice] = choicesOf(reply, { count: 1, model: name, isAdapter }, where);
  checkPromptIds(choice, ids, where);
  countTokens?.(ids.length + 1);
  return new Map(topLogProbs(choice, where)?.[0]);
}

const nextBody = (model: string, ids: readonly number[], topCount: number) => ({
  model,
  prompt: ids,
  max_tokens: 1,
  temperature: 0,
  ...neutralSampling,
  logprobs: topCount,
  return_tokens_as_token_ids: true,
  return_token_ids: true,
});
