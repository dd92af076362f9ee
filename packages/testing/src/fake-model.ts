import type {
  Abilities,
  Completion,
  EvaluableModel,
  LogLikelihood,
  LogLikelihoodRequest,
  ModelIdentity,
  NextToken,
  Prompt,
  Sampling,
  Tokenizer,
} from "@periodic-eval/contracts";
import { bulkTokenizer } from "@periodic-eval/core";
import { encodePairs, renderPrompts, type EncodedPair } from "@periodic-eval/core/evaluations";
import { endingOf } from "@periodic-eval/core/model";
import { fakeTokenizer } from "./fake-tokenizer.ts";

export interface FakeModelOptions {
  readonly tokenizer?: Tokenizer;
  /** Returns Σ log p of a continuation, from the decoded, uncut context. Null leaves it to the hash. */
  readonly logLikelihood?: (context: string, continuation: string) => number | null;
  /** Returns log p of the next token, from the decoded prompt and candidate. Null leaves it to the hash. */
  readonly nextToken?: (prompt: string, candidate: string) => number | null;
  /** Returns the completion of a prompt. Null leaves it to the hash. */
  readonly reply?: (prompt: string, sampling: Sampling) => string | null;
  /** Returns the hidden state of a layer, from the decoded prompt. Null leaves it to the hash. */
  readonly hiddenState?: (prompt: string, layer: number) => readonly number[] | null;
  /** Default: null (unlimited). */
  readonly contextLength?: number | null;
  /** Returns a string that changes every hashed number, like a training step. Called for each request. */
  readonly weights?: () => string;
  readonly identity?: Partial<ModelIdentity>;
  readonly base?: EvaluableModel;
}

export type FakeModel = EvaluableModel &
  Abilities & {
    readonly calls: { logLikelihoods: number; nextToken: number; generate: number };
  };

/**
 * Returns a language model whose distribution is a hash of the context: deterministic, normalized over the vocabulary and
 * independent of the other requests of a batch. Tests script the answers they need. Passes `modelConformance`.
 */
export function fakeModel(options: FakeModelOptions = {}): FakeModel {
  const { tokenizer = fakeTokenizer(), contextLength = null } = options;
  const bulk = bulkTokenizer(tokenizer);
  const { scoreContinuation, scoreNext, complete } = answersOf({ ...options, tokenizer });
  const idsOf = async (requests: readonly { readonly prompt: Prompt }[]) =>
    (
      await renderPrompts(
        bulk,
        requests.map(({ prompt }) => prompt),
      )
    ).map(({ ids }) => ids);
  const calls = { logLikelihoods: 0, nextToken: 0, generate: 0 };
  return {
    identity: {
      name: "fake",
      engine: "fake",
      dtype: "float64",
      weights: null,
      adapter: null,
      ...options.identity,
    },
    contextLength,
    layerCount: 2,
    tokenizer: bulk,
    calls,
    ...(options.base !== undefined && { base: options.base }),
    async logLikelihoods(requests, { signal }) {
      signal.throwIfAborted();
      calls.logLikelihoods++;
      const pairs = await encodePairs(bulk, requests);
      return requests.map((request, at) => scoreContinuation(request, pairs[at]!));
    },
    async nextToken(requests, { signal }) {
      signal.throwIfAborted();
      calls.nextToken++;
      const ids = await idsOf(requests);
      return requests.map(({ prompt, candidates }, at) => scoreNext(prompt, ids[at]!, candidates));
    },
    async generate(requests, { signal }) {
      signal.throwIfAborted();
      calls.generate++;
      const ids = await idsOf(requests);
      return requests.map(({ prompt, sampling }, at) => complete(prompt, ids[at]!, sampling));
    },
    async hiddenStates(requests, { signal }) {
      signal.throwIfAborted();
      const ids = await idsOf(requests);
      const { weights = () => "" } = options;
      return requests.map(({ layers = [0, 1, 2] }, at) =>
        layers.map((layer) => {
          const read = tokenizer.decode(ids[at]!);
          const hashed = (_: unknown, index: number) =>
            hash(`${weights()}|${layer}|${index}|${ids[at]!.join(",")}`);
          return Float32Array.from(options.hiddenState?.(read, layer) ?? Array.from({ length: 4 }, hashed));
        }),
      );
    },
  };
}

/** Returns the functions that answer one request each. */
function answersOf(options: FakeModelOptions & { readonly tokenizer: Tokenizer }) {
  const { tokenizer, contextLength = null, weights = () => "" } = options;
  const fit = (ids: readonly number[], room: number) => {
    const cut = contextLength === null ? 0 : Math.max(0, ids.length - Math.max(0, contextLength - room));
    return { ids: ids.slice(cut), truncatedTokens: cut };
  };
  const textOf = (prompt: Prompt) =>
    tokenizer.decode(tokenizer.render(prompt, { ending: endingOf(prompt) }).ids);
  const logProbs = (ids: readonly number[]) =>
    hashedLogProbs(`${weights()}|${ids.join(",")}`, tokenizer.vocabSize);

  function scoreContinuation(
    request: LogLikelihoodRequest,
    { context: before, continuation: target }: EncodedPair,
  ): LogLikelihood {
    const { ids, truncatedTokens } = fit(before, target.length - 1); // the last token is only predicted
    const tokenIsGreedy: boolean[] = [];
    const greedyIds: number[] = [];
    const tokenNats = target.map((id, at) => {
      const nats = logProbs([...ids, ...target.slice(0, at)]);
      tokenIsGreedy.push(nats.every((other) => other <= nats[id]!));
      greedyIds.push(nats.indexOf(Math.max(...nats)));
      return nats[id]!;
    });
    const { continuation } = request;
    const text = typeof continuation === "string" ? continuation : tokenizer.decode(continuation.ids);
    const scripted = options.logLikelihood?.(textOf(request.context), text) ?? null;
    if (scripted === null)
      return {
        sumNats: tokenNats.reduce((sum, nats) => sum + nats, 0),
        tokenNats,
        isGreedy: tokenIsGreedy.every(Boolean),
        tokenIsGreedy,
        ...(request.greedyIds === true && { tokenGreedyIds: greedyIds }),
        truncatedTokens,
      };
    return {
      sumNats: scripted,
      tokenNats: target.map(() => scripted / target.length),
      isGreedy: null,
      truncatedTokens,
    };
  }

  function scoreNext(prompt: Prompt, whole: readonly number[], candidates: readonly number[]): NextToken {
    const { ids, truncatedTokens } = fit(whole, 0);
    const hashed = logProbs(ids);
    const text = textOf(prompt);
    const nats = candidates.map((id) => options.nextToken?.(text, tokenizer.decode([id])) ?? hashed[id]!);
    const entropyNats =
      options.nextToken === undefined ? -hashed.reduce((sum, nat) => sum + Math.exp(nat) * nat, 0) : null;
    return { nats, entropyNats, truncatedTokens };
  }

  function complete(prompt: Prompt, ids: readonly number[], sampling: Sampling): Completion {
    const scripted = options.reply?.(textOf(prompt), sampling) ?? null;
    if (scripted !== null) return { text: scripted, ids: null, tokenNats: null, finish: "stop" };
    const written: number[] = [];
    const drawn = sampling.temperature === 0 ? "" : sampling.seed;
    while (written.length < sampling.maxNewTokens) {
      // A letter per position; one in sixteen ends the completion.
      const roll = hash(`${weights()}|${drawn}|${ids.join(",")}|${written.join(",")}`);
      if (roll % 16 === 0) break;
      written.push(97 + (roll % 26));
    }
    const whole = tokenizer.decode(written);
    const text = (sampling.stop ?? []).reduce((part, stop) => part.split(stop)[0]!, whole);
    const finish = written.length < sampling.maxNewTokens || text !== whole ? "stop" : "length";
    return { text, ids: text === whole ? written : null, tokenNats: null, finish };
  }

  return { scoreContinuation, scoreNext, complete };
}

/** Returns the log-softmax of hashed logits in [0, 4). */
function hashedLogProbs(seed: string, size: number): readonly number[] {
  let state = hash(seed);
  const logits = Array.from({ length: size }, () => {
    state = scramble(state + 0x9e3779b9);
    return (4 * state) / 2 ** 32;
  });
  const logSum = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
  return logits.map((logit) => logit - logSum);
}

/** Returns FNV-1a over UTF-16 units, scrambled; an unsigned 32-bit integer. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193);
  return scramble(state);
}

/** The finalizer of MurmurHash3 (public domain): every input bit affects every output bit. */
function scramble(value: number): number {
  let state = value >>> 0;
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) >>> 0;
}
