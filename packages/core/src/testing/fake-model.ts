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
} from "../contracts/model.ts";
import { encodePair, encodePrompt, endingOf } from "../model/encode-pair.ts";
import { fakeTokenizer } from "./fake-tokenizer.ts";

export interface FakeModelOptions {
  readonly tokenizer?: Tokenizer;
  /** Σ log p of a continuation, from the decoded context (untruncated); null leaves it to the hash. */
  readonly logLikelihood?: (context: string, continuation: string) => number | null;
  /** log p of the next token, both decoded; null leaves it to the hash. */
  readonly nextToken?: (prompt: string, candidate: string) => number | null;
  /** The completion of a prompt; null leaves it to the hash. */
  readonly reply?: (prompt: string, sampling: Sampling) => string | null;
  /** Default null: unbounded. */
  readonly contextLength?: number | null;
  /** Changes every number that the hash gives, as a training step would. Asked at each call. */
  readonly weights?: () => string;
  readonly identity?: Partial<ModelIdentity>;
  readonly base?: EvaluableModel;
}

/** A model of every ability, and how often each was asked. */
export type FakeModel = EvaluableModel &
  Abilities & { readonly calls: { logLikelihoods: number; nextToken: number; generate: number } };

/**
 * A language model whose distribution is a hash of the context: deterministic, normalised over the vocabulary, and the
 * same whatever stands beside a request in a batch. What a test wants to fix it scripts. Passes `modelConformance`.
 */
export function fakeModel(options: FakeModelOptions = {}): FakeModel {
  const { tokenizer = fakeTokenizer(), contextLength = null, weights = () => "" } = options;
  const calls = { logLikelihoods: 0, nextToken: 0, generate: 0 };

  const fit = (ids: readonly number[], room: number) => {
    const cut = contextLength === null ? 0 : Math.max(0, ids.length - Math.max(0, contextLength - room));
    return { ids: ids.slice(cut), truncatedTokens: cut };
  };
  const textOf = (prompt: Prompt) =>
    tokenizer.decode(tokenizer.render(prompt, { ending: endingOf(prompt) }).ids);
  const logProbs = (ids: readonly number[]) =>
    hashedLogProbs(`${weights()}|${ids.join(",")}`, tokenizer.vocabSize);

  function scoreContinuation(request: LogLikelihoodRequest): LogLikelihood {
    const { context: before, continuation: own } = encodePair(tokenizer, request);
    const { ids, truncatedTokens } = fit(before, own.length - 1); // the last token is only predicted
    const tokenIsGreedy: boolean[] = [];
    const tokenNats = own.map((id, at) => {
      const nats = logProbs([...ids, ...own.slice(0, at)]);
      tokenIsGreedy.push(nats.every((other) => other <= nats[id]!));
      return nats[id]!;
    });
    const { continuation } = request;
    const told = typeof continuation === "string" ? continuation : tokenizer.decode(continuation.ids);
    const scripted = options.logLikelihood?.(textOf(request.context), told) ?? null;
    if (scripted === null)
      return {
        sumNats: tokenNats.reduce((sum, nats) => sum + nats, 0),
        tokenNats,
        isGreedy: tokenIsGreedy.every(Boolean),
        tokenIsGreedy,
        truncatedTokens,
      };
    return {
      sumNats: scripted,
      tokenNats: own.map(() => scripted / own.length),
      isGreedy: null,
      truncatedTokens,
    };
  }

  function scoreNext(prompt: Prompt, candidates: readonly number[]): NextToken {
    const { ids, truncatedTokens } = fit(encodePrompt(tokenizer, prompt), 0);
    const hashed = logProbs(ids);
    const text = textOf(prompt);
    const nats = candidates.map((id) => options.nextToken?.(text, tokenizer.decode([id])) ?? hashed[id]!);
    const entropyNats =
      options.nextToken === undefined ? -hashed.reduce((sum, nat) => sum + Math.exp(nat) * nat, 0) : null;
    return { nats, entropyNats, truncatedTokens };
  }

  function complete(prompt: Prompt, sampling: Sampling): Completion {
    const ids = encodePrompt(tokenizer, prompt);
    const scripted = options.reply?.(textOf(prompt), sampling) ?? null;
    if (scripted !== null) return { text: scripted, ids: null, tokenNats: null, finish: "stop" };
    const written: number[] = [];
    const drawn = sampling.temperature === 0 ? "" : sampling.seed;
    while (written.length < sampling.maxNewTokens) {
      // A letter for each place, or the end one time in sixteen.
      const roll = hash(`${weights()}|${drawn}|${ids.join(",")}|${written.join(",")}`);
      if (roll % 16 === 0) break;
      written.push(97 + (roll % 26));
    }
    const whole = tokenizer.decode(written);
    const text = (sampling.stop ?? []).reduce((kept, stop) => kept.split(stop)[0]!, whole);
    const finish = written.length < sampling.maxNewTokens || text !== whole ? "stop" : "length";
    return { text, ids: text === whole ? written : null, tokenNats: null, finish };
  }

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
    tokenizer,
    calls,
    ...(options.base !== undefined && { base: options.base }),
    async logLikelihoods(requests, { signal }) {
      signal.throwIfAborted();
      calls.logLikelihoods++;
      return requests.map(scoreContinuation);
    },
    async nextToken(requests, { signal }) {
      signal.throwIfAborted();
      calls.nextToken++;
      return requests.map(({ prompt, candidates }) => scoreNext(prompt, candidates));
    },
    async generate(requests, { signal }) {
      signal.throwIfAborted();
      calls.generate++;
      return requests.map(({ prompt, sampling }) => complete(prompt, sampling));
    },
  };
}

/** log-softmax of hashed logits in [0, 4). */
function hashedLogProbs(seed: string, size: number): readonly number[] {
  let state = hash(seed);
  const logits = Array.from({ length: size }, () => {
    state = scramble(state + 0x9e3779b9);
    return (4 * state) / 2 ** 32;
  });
  const logSum = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
  return logits.map((logit) => logit - logSum);
}

/** FNV-1a over UTF-16 units, scrambled; unsigned 32 bits. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193);
  return scramble(state);
}

/** The finalizer of MurmurHash3 (public domain): every input bit reaches every output bit. */
function scramble(value: number): number {
  let state = value >>> 0;
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) >>> 0;
}
