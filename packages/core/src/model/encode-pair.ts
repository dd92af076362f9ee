import { PeriodicEvalError } from "../errors.ts";
import { pythonWhitespace } from "../internal/python-whitespace.ts";
import type { LogLikelihoodRequest, Prompt, RenderedPrompt, Tokenizer } from "../contracts/model.ts";

export interface EncodedPair {
  /** At least one token. */
  readonly context: readonly number[];
  /** At least one token. */
  readonly continuation: readonly number[];
}

/**
 * The tokens of a context and of its continuation.
 *
 * - Text: `_encode_pair` of lm-evaluation-harness 0.4: trailing white space of the context moves to the continuation;
 *   the continuation is `encode(context + continuation)` after the length of `encode(context)`.
 * - Chat: rendered with its generation prompt, or, where the last message is the assistant's, up to the end of that
 *   message (transformers' `continue_final_message`); the continuation is what `encode(text + continuation)`, without special
 *   tokens, has after the rendered ids. White space at the end of the template's generation prompt stays where it is
 *   (the harness moves it even there). Where the boundary merges into another token, the continuation is encoded alone.
 * - Ids: as they are; the continuation is encoded alone, without special tokens.
 *
 * A continuation of ids stays as it is, after whatever context.
 *
 * A context without tokens becomes the tokenizer's prefix token (see `prefixToken`), which is not scored.
 *
 * @throws PeriodicEvalError `data` where the continuation has no tokens of its own.
 */
export function encodePair(tokenizer: Tokenizer, request: LogLikelihoodRequest): EncodedPair {
  const { context, continuation } = splitPair(tokenizer, request);
  if (continuation.length === 0) {
    throw new PeriodicEvalError({
      code: "data",
      where: "logLikelihoods",
      got: `the continuation ${shownContinuation(request)}, which adds no token to its context`,
      expected: "at least one token to score",
      fix: "Give the continuation text of its own.",
    });
  }
  if (context.length > 0) return { context, continuation };
  const prefix = prefixToken(tokenizer);
  // As the harness: a continuation that brings the prefix itself is not given a second one.
  if (continuation.length > 1 && continuation[0] === prefix) {
    return { context: [prefix], continuation: continuation.slice(1) };
  }
  return { context: [prefix], continuation };
}

/** As an error quotes it: at most 60 characters of a text, or 12 ids. */
export function shownContinuation({ continuation }: Pick<LogLikelihoodRequest, "continuation">): string {
  if (typeof continuation === "string")
    return JSON.stringify(continuation.length > 60 ? `${continuation.slice(0, 60)}…` : continuation);
  const ids = continuation.ids.slice(0, 12).join(", ");
  return `[${ids}${continuation.ids.length > 12 ? ", …" : ""}]`;
}

/** The ids of a prompt; the prefix token where it has none. Chats end so that the assistant speaks on. */
export function encodePrompt(tokenizer: Tokenizer, prompt: Prompt): readonly number[] {
  return renderPrompt(tokenizer, prompt).ids;
}

/** A prompt as a model reads it, with its text: see `encodePrompt`. */
export function renderPrompt(tokenizer: Tokenizer, prompt: Prompt): RenderedPrompt {
  const rendered = tokenizer.render(prompt, { ending: endingOf(prompt) });
  return rendered.ids.length > 0 ? rendered : { ...rendered, ids: [prefixToken(tokenizer)] };
}

function splitPair(tokenizer: Tokenizer, { context, continuation }: LogLikelihoodRequest): EncodedPair {
  if (typeof continuation !== "string") {
    const { ids } = tokenizer.render(context, { ending: endingOf(context) });
    return { context: ids, continuation: continuation.ids };
  }
  const alone = () => tokenizer.encode(continuation, { specialTokens: false });
  if ("ids" in context) return { context: context.ids, continuation: alone() };
  if ("text" in context) {
    const start = context.text.replace(trailingWhiteSpace, "");
    if (start === "") {
      return {
        context: [],
        continuation: tokenizer.encode(context.text + continuation, { specialTokens: false }),
      };
    }
    const ids = tokenizer.encode(start);
    return { context: ids, continuation: tokenizer.encode(context.text + continuation).slice(ids.length) };
  }
  const { text, ids } = tokenizer.render(context, { ending: endingOf(context) });
  if (text === null) return { context: ids, continuation: alone() };
  const whole = tokenizer.encode(text + continuation, { specialTokens: false });
  const keepsBoundary = whole.length > ids.length && ids.every((id, index) => id === whole[index]);
  return { context: ids, continuation: keepsBoundary ? whole.slice(ids.length) : alone() };
}

/** A message of the assistant that ends a chat was begun, and is spoken on. */
export function endingOf(prompt: Prompt): "generation" | "continue" {
  return "messages" in prompt && prompt.messages.at(-1)?.role === "assistant" ? "continue" : "generation";
}

/** What Python's `str.rstrip` strips. */
const trailingWhiteSpace = new RegExp(`${pythonWhitespace}+$`, "u");

/**
 * The token that stands for an empty context, so that a first token can be scored: the first special token that the
 * tokenizer adds to every text (Llama's begin-of-text), else its first stop id (GPT-2's end-of-text), as
 * lm-evaluation-harness's `prefix_token_id` takes bos, else eos.
 */
function prefixToken(tokenizer: Tokenizer): number {
  const prefix = tokenizer.encode("")[0] ?? tokenizer.stopIds[0];
  if (prefix !== undefined) return prefix;
  throw new PeriodicEvalError({
    code: "data",
    where: "tokenizer",
    got: "an empty context, and a tokenizer with neither a special token at the start nor a stop id",
    expected: "a token that can stand for the empty context",
    fix: "Give the context at least one token.",
  });
}
