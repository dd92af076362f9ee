import type { Json, Awaitable } from "./json.ts";

/**
 * The system prompt of a chat.
 * - `"omit"`: passes no system message. The template may then insert its default one; the snapshot records the rendered text.
 * - `"no_system_block"`: the rendered text must have no system block; an error if the template cannot render one without.
 * - `{ text }`: passes a system message. `{ text: "" }` passes an empty one, which differs from passing none.
 */
export type SystemPrompt = "omit" | "no_system_block" | { readonly text: string };

export interface Message {
  readonly role: string;
  readonly content: string;
}

/** A message as a chat template reads it. Its further fields, such as `tool_calls`, go to the template unchanged. */
export interface TemplateMessage {
  readonly role: string;
  readonly content?: Json;
}

/** Variables for a chat template, by name. */
export type TemplateKwargs = Readonly<Record<string, Json>>;

/** A chat of training data: messages with every field and role that its template reads. */
export interface TemplateChat {
  readonly messages: readonly TemplateMessage[];
  readonly system?: SystemPrompt;
  /** JSON schemas of the tools that the chat offers. */
  readonly tools?: readonly Json[] | null;
  /** Further template variables, as in `Prompt`. */
  readonly templateKwargs?: TemplateKwargs;
}

/**
 * The input of a model: raw text, token ids (used unchanged), or a chat that the tokenizer's template renders. If the last
 * message of a chat is the assistant's, the model continues that message.
 */
export type Prompt =
  | { readonly text: string }
  | { readonly ids: readonly number[] }
  | {
      readonly messages: readonly Message[];
      readonly system?: SystemPrompt;
      /** Further template variables, such as `enable_thinking`; as in transformers' `apply_chat_template(**kwargs)`. */
      readonly templateKwargs?: TemplateKwargs;
    };

/**
 * How a rendered chat ends.
 * - `"generation"` (default): with the template's generation prompt, so that the assistant's turn comes next.
 * - `"continue"`: inside the last message, which stays open.
 * - `"complete"`: after the last message, as in a training row.
 */
export type ChatEnding = "generation" | "continue" | "complete";

export interface RenderedPrompt {
  /** The text before encoding; null if the prompt was given as ids. */
  readonly text: string | null;
  readonly ids: readonly number[];
  /**
   * One boolean per id, true for tokens of an assistant turn; null if the prompt is not a chat, or if its template does not
   * reveal them, or if `isUnaligned`.
   */
  readonly assistantMask: readonly boolean[] | null;
  /** True if the template reveals the assistant's turns, but their tokens cannot be found: they spell another text. */
  readonly isUnaligned?: boolean;
  /** True if `training` changed the text of earlier answers. */
  readonly isRewritten?: boolean;
}

/** The facts of a tokenizer that are known without a call. */
export interface TokenizerFacts {
  /** Hash of everything that changes an encoding or a rendering. */
  readonly fingerprint: string;
  readonly vocabSize: number;
  /** Ids that end a completion: the model's end-of-text and the template's end-of-turn tokens. */
  readonly stopIds: readonly number[];
  /** The token that ends a training text (Hugging Face's `eos_token`); null or absent if the tokenizer has none. */
  readonly eosId?: number | null;
}

/**
 * A tokenizer in this process, which answers at once: what `loadTokenizer` returns, and what trainers and engines in memory use.
 * `bulkTokenizer` makes it the ability of a model.
 */
export interface Tokenizer extends TokenizerFacts {
  /** Returns token ids. `specialTokens` (default true) is Hugging Face's `add_special_tokens`. */
  encode(text: string, options?: { readonly specialTokens?: boolean }): readonly number[];
  /** Returns the text. `specialTokens` (default true) keeps special tokens in it. */
  decode(ids: readonly number[], options?: { readonly specialTokens?: boolean }): string;
  /**
   * Renders and encodes a prompt. A chat gets only the special tokens that its template writes; a text those that the tokenizer puts
   * before a text, but none that it appends. `training` (default false)
   * writes earlier answers with the thinking block that the template writes for the last answer alone, as TRL 1.16.0's training
   * templates do.
   */
  render(
    prompt: Prompt | TemplateChat,
    options?: { readonly ending?: ChatEnding; readonly training?: boolean },
  ): RenderedPrompt;
}

/** Options of a call of a `BulkTokenizer`. */
export interface BulkOptions {
  /** Ends the call early; its results are lost. */
  readonly signal?: AbortSignal;
}

/**
 * The ability `tokenizer` of a model. It may be in another process, where each call is a message: ask for all texts of a measurement
 * at once. Each call returns one result per text, row or prompt, in order, and rejects if one of them fails. Options are those of
 * `Tokenizer`.
 */
export interface BulkTokenizer extends TokenizerFacts {
  encode(
    texts: readonly string[],
    options?: BulkOptions & { readonly specialTokens?: boolean },
  ): Promise<readonly (readonly number[])[]>;
  decode(
    rows: readonly (readonly number[])[],
    options?: BulkOptions & { readonly specialTokens?: boolean },
  ): Promise<readonly string[]>;
  render(
    prompts: readonly Prompt[],
    options?: BulkOptions & { readonly ending?: ChatEnding },
  ): Promise<readonly RenderedPrompt[]>;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  /** The engine calls it with the number of tokens it read and generated for the call, without padding, if it knows it. */
  readonly countTokens?: (tokens: number) => void;
  /**
   * A server's client calls it before each request that it sends for the call, including retries, so that requests can be
   * counted against a budget. If it throws, the call ends with that error and sends nothing more.
   */
  readonly beforeRequest?: () => RequestEnded;
}

/**
 * Reports the end of a request. `mayBeBilled` is false only if no token can have been generated: the server was not reached
 * or refused the request.
 */
export type RequestEnded = (mayBeBilled: boolean) => void;

export interface Sampling {
  readonly maxNewTokens: number;
  /** 0 decodes greedily. */
  readonly temperature: number;
  /** Samples from the smallest set of tokens whose probabilities sum to at least `topP`, in (0, 1]. Default: all tokens. */
  readonly topP?: number;
  /** Samples from the `topK` most likely tokens. Default: all tokens. */
  readonly topK?: number;
  /** Strings that end the completion; it stops before the first one found. */
  readonly stop?: readonly string[];
  /** How many of the most likely tokens to return per position, in `Completion.topNats`, if the engine can. */
  readonly topTokens?: number;
  /** Names the random stream of this sequence, so that a completion does not depend on the others in its batch. */
  readonly seed: string;
}

export interface LogLikelihood {
  /** Σ log p of the continuation's tokens, in nats. */
  readonly sumNats: number;
  /** log p of each token of the continuation, in nats. */
  readonly tokenNats: readonly number[];
  /** Whether every token of the continuation was the most likely one; null if the engine does not report it. */
  readonly isGreedy: boolean | null;
  /** The same per token, where a tie counts as most likely; null or absent if the engine does not report it. */
  readonly tokenIsGreedy?: readonly boolean[] | null;
  /** The most likely token in place of each token (the first of a tie), if the request asked; null or absent if unsupported. */
  readonly tokenGreedyIds?: readonly number[] | null;
  /** Tokens cut from the left of the context to fit the model's context length, 0 if all fitted; null if the engine does not report it. */
  readonly truncatedTokens: number | null;
}

export interface NextToken {
  /** log p of each candidate, in nats, in the order of the request. */
  readonly nats: readonly number[];
  /** Entropy of the whole distribution, in nats; null if the engine does not report it. */
  readonly entropyNats: number | null;
  /** Tokens cut from the left of the prompt to fit the model's context length; 0 if all fitted. */
  readonly truncatedTokens: number;
}

/** An alternative token at one position of a completion. */
export interface TopToken {
  readonly text: string;
  /** log p, in nats. */
  readonly nats: number;
}

/**
 * Token counts of one completion as its server bills them, including template tokens and hidden reasoning tokens. Null if the
 * server does not report the count.
 */
export interface Usage {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

export interface Completion {
  readonly text: string;
  /** Generated token ids; null if the engine does not report them. */
  readonly ids: readonly number[] | null;
  /** log p of each generated token, in nats; null if the engine does not report it. */
  readonly tokenNats: readonly number[] | null;
  /** Per position the most likely tokens, best first, if `Sampling.topTokens` requested them; absent if unsupported. */
  readonly topNats?: readonly (readonly TopToken[])[] | null;
  /** `"stop"`: a stop token or stop string ended it. `"length"`: `maxNewTokens` or the context length did. */
  readonly finish: "stop" | "length";
  /** The model name that the server returned with this completion; absent for a model in this process. */
  readonly model?: string;
  /** Absent if no server reports it. */
  readonly usage?: Usage;
}

export interface LogLikelihoodRequest {
  /**
   * For text, the continuation's tokens are the tokens of `context + continuation` after those of the context alone
   * (lm-evaluation-harness `_encode_pair`: trailing spaces of the context move to the continuation). Ids are scored unchanged.
   */
  readonly context: Prompt;
  readonly continuation: string | { readonly ids: readonly number[] };
  /** Also returns `tokenGreedyIds`: one more search of the vocabulary per token. Default false. */
  readonly greedyIds?: boolean;
}

export interface NextTokenRequest {
  readonly prompt: Prompt;
  /** Token ids whose probability is requested. */
  readonly candidates: readonly number[];
}

export interface GenerateRequest {
  readonly prompt: Prompt;
  readonly sampling: Sampling;
}

export interface HiddenStatesRequest {
  readonly prompt: Prompt;
  /** 0 is the embedding; the last one is after the final norm (transformers' `output_hidden_states`). Default: all layers. */
  readonly layers?: readonly number[];
  /** The first of the tokens over which vectors are averaged, up to the last one. Default: the last token alone. */
  readonly from?: number;
}

/** The abilities of a model. An evaluation names those it needs and sees no others. */
export interface Abilities {
  readonly tokenizer: BulkTokenizer;
  /** Scores a continuation of each context; one result per request, in order. */
  logLikelihoods(
    requests: readonly LogLikelihoodRequest[],
    options: CallOptions,
  ): Promise<readonly LogLikelihood[]>;
  /** Returns the probabilities of candidate tokens right after each prompt; one result per request, in order. */
  nextToken(requests: readonly NextTokenRequest[], options: CallOptions): Promise<readonly NextToken[]>;
  /** Samples one completion per request, in order. */
  generate(requests: readonly GenerateRequest[], options: CallOptions): Promise<readonly Completion[]>;
  /** Returns the hidden states of prompts: per request one vector [width] for each of its layers, in order. */
  hiddenStates(
    requests: readonly HiddenStatesRequest[],
    options: CallOptions,
  ): Promise<readonly (readonly Float32Array[])[]>;
}

export type Ability = keyof Abilities;

export interface ModelIdentity {
  readonly name: string;
  /** The software that runs the model: `tfjs-wasm`, `tfjs-tensorflow`, `vllm`. */
  readonly engine: string;
  readonly dtype: string;
  /** Fingerprint of weights that cannot change during the run (a served checkpoint); null for a live model. */
  readonly weights: string | null;
  readonly adapter: string | null;
  /** Versions and settings of the engine that can change a number. */
  readonly details?: Json;
}

/** A model that can be measured: its identity and the abilities it has. */
export interface EvaluableModel extends Partial<Abilities> {
  readonly identity: ModelIdentity;
  /** Longest sequence in tokens; null if unknown. */
  readonly contextLength: number | null;
  /** The number of layers; `hiddenStates` has one vector more. Absent if it is unknown. */
  readonly layerCount?: number;
  /** The same model without its adapter. */
  readonly base?: EvaluableModel;
  /** True if a server runs the model: guards of this process cannot observe how it is trained. */
  readonly isServed?: boolean;
  /**
   * Calls that keep the model busy: a server with replicas works on several at a time. Default 1, for a model that answers one after
   * the other.
   */
  readonly concurrentCalls?: number;
  /**
   * By how much the log-prob of a token may depend on the other rows and tokens of a batch, in nats. Default 1e-3 in
   * float32; in other formats `Infinity`: nothing is known about it.
   */
  readonly toleranceNats?: number;
  /**
   * Checks with a few small requests that the model's numbers can be trusted. The session calls it once, before a phase, and for a
   * served model before and after each measurement.
   *
   * @throws PeriodicEvalError `model` if they cannot.
   */
  check?(options: CallOptions): Promise<void>;
}

/** A model with the abilities `A`: what an evaluation that needs `A` may use. */
export type ModelWith<A extends Ability> = Pick<Abilities, A> &
  Pick<EvaluableModel, "identity" | "contextLength" | "layerCount" | "base" | "check">;

/** A model that was opened to be measured. Whoever opens it disposes it. */
export interface OpenedModel {
  readonly model: EvaluableModel;
  /**
   * Returns the hash of all weights, including the adapter's; null if unknown. Without it, an interrupted run cannot be resumed,
   * because the weights cannot be compared.
   */
  fingerprint?(): Awaitable<string | null>;
  /** Returns the hash of the weights without the adapter: `frozenWeights` in checkpoints of our trainers. */
  baseFingerprint?(): Awaitable<string | null>;
  dispose?(): Awaitable<void>;
}

export interface OpenCheckpointOptions {
  /** A tokenizer's folder or name on the hub. Default: the checkpoint's, otherwise the base model's. */
  readonly tokenizer?: string | null;
  readonly signal?: AbortSignal;
}

/**
 * Opens a checkpoint of a base model, in this process or on a server.
 *
 * @param base A folder, or `owner/name` on the hub.
 * @param path A folder with a full checkpoint (`config.json`) or an adapter in PEFT's format (`adapter_config.json`); for an adapter
 *   also `owner/name` on the hub. Null (default): the base model itself.
 * @throws PeriodicEvalError `model` if it cannot be opened, or if the adapter was trained on another base model.
 */
export type OpenCheckpoint = (
  base: string,
  path?: string | null,
  options?: OpenCheckpointOptions,
) => Promise<OpenedModel>;
