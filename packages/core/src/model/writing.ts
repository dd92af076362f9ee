import {
  type Completion,
  type GenerateRequest,
  type Prompt,
  type Sampling,
  type Tokenizer,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { parseOptions } from "@periodic-eval/contracts/options";
import { namedStream } from "../random/streams.ts";
import { encodePrompt } from "./encode-pair.ts";
import { samplingSchema, type Drawn } from "./sampling.ts";

/** A request for a completion that fits the model's context length. */
export interface FittedRequest {
  readonly prompt: readonly number[];
  readonly sampling: Sampling;
  /** Most tokens to generate, by `maxNewTokens` and the context length. */
  readonly room: number;
}

/** A completion that is being generated. */
export interface Writing extends FittedRequest {
  readonly random: () => number;
  readonly ids: number[];
  readonly nats: number[];
  /** The reason why the sequence ended; null while it continues. */
  stopped: Stopped | null;
}

type Stopped = { readonly by: "stop id" } | { readonly by: "stop string"; readonly text: string };

/**
 * Encodes a request for a model with a context length of `window` tokens.
 *
 * @throws PeriodicEvalError `config` for a wrong sampling setting; `data` for a prompt longer than the context length, because a
 *   completion cannot report what was cut.
 */
export function fitRequest(
  tokenizer: Tokenizer,
  { prompt, sampling }: GenerateRequest,
  window: number,
): FittedRequest {
  parseOptions("sampling", samplingSchema, sampling);
  // Encoding takes seconds per megabyte.
  const characters = charactersIn(prompt);
  if (characters > charactersPerToken * window)
    throw tooLong(
      `${characters} characters`,
      `at most ${charactersPerToken * window}: the model reads ${window} tokens`,
    );
  const ids = encodePrompt(tokenizer, prompt);
  if (ids.length > window)
    throw tooLong(`${ids.length} tokens`, `at most ${window} tokens, the model's context length`);
  // The last token is drawn but never read.
  return { prompt: ids, sampling, room: Math.min(sampling.maxNewTokens, window + 1 - ids.length) };
}

/** More than a token has on average in any language; tokens of this length are runs of one character. */
export const charactersPerToken = 64;

function charactersIn(prompt: Prompt): number {
  if ("messages" in prompt) return prompt.messages.reduce((sum, { content }) => sum + content.length, 0);
  return "text" in prompt ? prompt.text.length : 0;
}

const tooLong = (size: string, expected: string) =>
  new PeriodicEvalError({
    code: "data",
    where: "generate",
    got: `a prompt of ${size}`,
    expected,
    fix: "Shorten the prompt, or use a model with a longer context.",
  });

/** Begins a completion at the start of the random stream that its seed names. */
export const beginWriting = (request: FittedRequest): Writing => ({
  ...request,
  random: namedStream(request.sampling.seed),
  ids: [],
  nats: [],
  stopped: null,
});

/** Whether a completion has ended. */
export const isWritten = ({ stopped, ids, room }: Writing): boolean => stopped !== null || ids.length >= room;

/** Adds a drawn token, and ends the completion at a stop id or a stop string. */
export function acceptToken(tokenizer: Tokenizer, writing: Writing, { token, nats }: Drawn): void {
  writing.ids.push(token);
  writing.nats.push(nats);
  if (tokenizer.stopIds.includes(token)) {
    writing.stopped = { by: "stop id" };
    return;
  }
  const { stop = [] } = writing.sampling;
  if (stop.length === 0) return;
  const text = tokenizer.decode(writing.ids, { specialTokens: false });
  const at = firstOf(stop, text);
  if (at < Infinity) writing.stopped = { by: "stop string", text: text.slice(0, at) };
  else stopAtSpecial(tokenizer, writing, stop);
}

const firstOf = (strings: readonly string[], text: string): number =>
  Math.min(...strings.map((string) => text.indexOf(string)).filter((index) => index >= 0));

/** Stops at a stop string that contains special tokens, which only text decoded with special tokens shows. */
function stopAtSpecial(tokenizer: Tokenizer, writing: Writing, stop: readonly string[]): void {
  const { ids } = writing;
  const shown = (count: number) => tokenizer.decode(ids.slice(0, count));
  const text = shown(ids.length);
  const at = firstOf(stop, text);
  if (at === Infinity) return;
  let before = ids.length;
  while (before > 0 && shown(before).length > at) before--;
  const whole = before === 0 ? "" : tokenizer.decode(ids.slice(0, before), { specialTokens: false });
  const rest = text.slice(before === 0 ? 0 : shown(before).length, at);
  writing.stopped = { by: "stop string", text: whole + rest };
}

/** Returns the completion of a sequence that ended. */
export function completionOf(tokenizer: Tokenizer, { ids, nats, stopped }: Writing): Completion {
  const written = stopped?.by === "stop id" ? ids.slice(0, -1) : ids;
  return {
    // Some tokenizers throw for an empty array.
    text:
      stopped?.by === "stop string"
        ? stopped.text
        : written.length === 0
          ? ""
          : tokenizer.decode(written, { specialTokens: false }),
    ids,
    tokenNats: nats,
    finish: stopped ? "stop" : "length",
  };
}
