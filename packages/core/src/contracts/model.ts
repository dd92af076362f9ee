import type { Json } from "./json.ts";

/**
 * The system prompt of a chat.
 * - `"omit"`: no system message is passed; a template may then inject its own (what was rendered is recorded).
 * - `"no_system_block"`: the rendered text must hold no system block at all; an error where the template cannot.
 * - `{ text }`: a system message; `{ text: "" }` is an explicit empty one, which is not the same as none.
 */
export type SystemPrompt = "omit" | "no_system_block" | { readonly text: string };

export interface Message {
  readonly role: string;
  readonly content: string;
}

/** Variables of a chat template, by name. */
export type TemplateKwargs = Readonly<Record<string, Json>>;

/**
 * What a model is asked: raw text, token ids as they are, or a chat that the tokenizer's template renders. A chat whose
 * last message is the assistant's is one that it began: it goes on inside that message.
 */
export type Prompt =
  | { readonly text: string }
  | { readonly ids: readonly number[] }
  | {
      readonly messages: readonly Message[];
      readonly system?: SystemPrompt;
      /** What the template is given besides the chat, as transformers' `apply_chat_template(**kwargs)`: `enable_thinking`. */
      readonly templateKwargs?: TemplateKwargs;
    };

/**
 * How a rendered chat ends.
 * - `"generation"`: with the template's generation prompt, ready for the assistant to speak (the default).
 * - `"continue"`: inside the last message, which is left open.
 * - `"complete"`: after the last message, as a training row.
 */
export type ChatEnding = "generation" | "continue" | "complete";

export interface RenderedPrompt {
  /** The text before encoding; null where the prompt came as ids. */
  readonly text: string | null;
  readonly ids: readonly number[];
  /** One boolean per id, true where an assistant's turn was encoded; null where the prompt is no chat. */
  readonly assistantMask: readonly boolean[] | null;
}

export interface Tokenizer {
  /** Hash of everything that changes an encoding or a rendering. */
  readonly fingerprint: string;
  readonly vocabSize: number;
  /** Ids that end a completion: the model's end-of-text and the template's end-of-turn. */
  readonly stopIds: readonly number[];
  /** What a text ends with in training, Hugging Face's `eos_token`; null or left out where there is none. */
  readonly eosId?: number | null;
  /** `specialTokens` (default true) adds what the tokenizer's post-processor adds, as Hugging Face's `add_special_tokens`. */
  encode(text: string, options?: { readonly specialTokens?: boolean }): readonly number[];
  /** `specialTokens` (default true) keeps special tokens in the text. */
  decode(ids: readonly number[], options?: { readonly specialTokens?: boolean }): string;
  /** Chats never get special tokens beyond those their template writes. */
  render(prompt: Prompt, options?: { readonly ending?: ChatEnding }): RenderedPrompt;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  /** Told how many tokens the model read and drew for the call, padding left out; by engines that know. */
  readonly countTokens?: (tokens: number) => void;
  /**
   * Called by a server's client before each request that it sends for the call, those that it repeats included: who pays can
   * count them. What it throws ends the call, and nothing more is sent.
   */
  readonly beforeRequest?: () => RequestEnded;
}

/** Told how a request ended: false only where no token can have been made, for the server was not reached or refused. */
export type RequestEnded = (mayBeBilled: boolean) => void;

export interface Sampling {
  readonly maxNewTokens: number;
  /** 0 is greedy. */
  readonly temperature: number;
  readonly topP?: number;
  readonly topK?: number;
  /** The completion ends before the first of these strings. */
  readonly stop?: readonly string[];
  /** So many of the most likely tokens at each place come with the completion; of engines that tell them (`topNats`). */
  readonly topTokens?: number;
  /** Names this sequence's own random stream: a completion does not depend on its neighbours in a batch. */
  readonly seed: string;
}

export interface LogLikelihood {
  /** Σ log p of the continuation's tokens, in nats. */
  readonly sumNats: number;
  readonly tokenNats: readonly number[];
  /** Whether every token of the continuation was the most likely one; null where the engine cannot tell. */
  readonly isGreedy: boolean | null;
  /** The same by token, ties counted as most likely; null, or left out, where the engine cannot tell. */
  readonly tokenIsGreedy?: readonly boolean[] | null;
  /** Tokens of the context cut on the left to fit the model; 0 where all fitted. */
  readonly truncatedTokens: number;
}

export interface NextToken {
  /** log p of each candidate, in nats, in the order asked. */
  readonly nats: readonly number[];
  /** Entropy of the whole distribution; null where the engine cannot tell. */
  readonly entropyNats: number | null;
  /** Tokens of the prompt cut on the left to fit the model; 0 where all fitted. */
  readonly truncatedTokens: number;
}

/** A token that could have stood at a place. */
export interface TopToken {
  readonly text: string;
  /** Its log p, in nats. */
  readonly nats: number;
}

/** Tokens of one completion as its server counts them: what is paid for, a template's own and hidden ones included. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface Completion {
  readonly text: string;
  readonly ids: readonly number[] | null;
  readonly tokenNats: readonly number[] | null;
  /** By place, most likely first, where `Sampling.topTokens` asked for them; left out by engines that cannot tell. */
  readonly topNats?: readonly (readonly TopToken[])[] | null;
  readonly finish: "stop" | "length";
  /** The model's name as the server gave it with this completion; left out where no server is between. */
  readonly model?: string;
  /** Left out where no server tells. */
  readonly usage?: Usage;
}

export interface LogLikelihoodRequest {
  /**
   * For text, the continuation's tokens are those of `context + continuation` after the context's own
   * (lm-evaluation-harness `_encode_pair`; trailing spaces of the context move to the continuation). Ids are scored as
   * they are.
   */
  readonly context: Prompt;
  readonly continuation: string | { readonly ids: readonly number[] };
}

export interface NextTokenRequest {
  readonly prompt: Prompt;
  readonly candidates: readonly number[];
}

export interface GenerateRequest {
  readonly prompt: Prompt;
  readonly sampling: Sampling;
}

/** What an engine can do. An evaluation names those it needs and sees no others. */
export interface Abilities {
  readonly tokenizer: Tokenizer;
  logLikelihoods(
    requests: readonly LogLikelihoodRequest[],
    options: CallOptions,
  ): Promise<readonly LogLikelihood[]>;
  nextToken(requests: readonly NextTokenRequest[], options: CallOptions): Promise<readonly NextToken[]>;
  generate(requests: readonly GenerateRequest[], options: CallOptions): Promise<readonly Completion[]>;
}

export type Ability = keyof Abilities;

export interface ModelIdentity {
  readonly name: string;
  /** For example `tfjs-wasm`, `tfjs-tensorflow`, `vllm`. */
  readonly engine: string;
  readonly dtype: string;
  /** Fingerprint of the weights where they cannot change under us (a served checkpoint); null for a live model. */
  readonly weights: string | null;
  readonly adapter: string | null;
  /** Versions and settings of the engine that can change a number. */
  readonly details?: Json;
}

export interface EvaluableModel extends Partial<Abilities> {
  readonly identity: ModelIdentity;
  /** Longest sequence in tokens; null where it is not known. */
  readonly contextLength: number | null;
  /** The same model without its adapter. */
  readonly base?: EvaluableModel;
  /**
   * Looks, by a few small requests, whether the model's numbers can be trusted; asked once before a phase.
   *
   * @throws PeriodicEvalError `model` where they cannot.
   */
  check?(options: CallOptions): Promise<void>;
  /**
   * How uncertain the model is within texts: after each token of a text but its last, the entropy of the next one, in nats,
   * by the whole distribution. Of servers, whose tokenizer is elsewhere; a model in memory has `tokenizer` and `nextToken`.
   */
  textEntropies?(texts: readonly string[], options: CallOptions): Promise<readonly (readonly number[])[]>;
}

export type With<A extends Ability> = Pick<Abilities, A> &
  Pick<EvaluableModel, "identity" | "contextLength" | "base" | "check" | "textEntropies">;
