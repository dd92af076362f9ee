import {
  type LogLikelihoodRequest,
  type Prompt,
  type RenderedPrompt,
  type Tokenizer,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { pythonWhitespace } from "@periodic-eval/contracts/options";
import { checkPrompt } from "./check-prompt.ts";

export interface EncodedPair {
  /** At least one token. */
  readonly context: readonly number[];
  /** At least one token. */
  readonly continuation: readonly number[];
}

/**
 * Encodes a context and its continuation.
 *
 * - Text: `_encode_pair` of lm-evaluation-harness 0.4. Trailing white space of the context moves to the continuation; the
 *   continuation is `encode(context + continuation)` after the length of `encode(context)`.
 * - Chat: rendered with its generation prompt or, if the last message is the assistant's, up to the end of that message
 *   (transformers' `continue_final_message`). The continuation is `encode(text + continuation)`, without special tokens, after
 *   the rendered ids. Deviation: white space at the end of the template's generation prompt stays in the context (the harness
 *   moves it). If the boundary merges into another token, the continuation is encoded alone.
 * - Ids: unchanged; the continuation is encoded alone, without special tokens.
 *
 * A continuation of ids is unchanged after any context. A context without tokens becomes the tokenizer's prefix token (see
 * `prefixToken`), which is not scored.
 *
 * @throws PeriodicEvalError `data` for a continuation that adds no token.
 */
export function encodePair(tokenizer: Tokenizer, request: LogLikelihoodRequest): EncodedPair {
  const { context, continuation } = splitPair(tokenizer, request);
  if (continuation.length === 0) {
    throw new PeriodicEvalError({
      code: "data",
      where: "logLikelihoods",
      got: `the continuation ${quoteContinuation(request)}, which adds no token to its context`,
      expected: "at least one token to score",
      fix: "Use a continuation that is not empty.",
    });
  }
  if (context.length > 0) return { context, continuation };
  const prefix = prefixToken(tokenizer);
  // As in the harness, a continuation that starts with the prefix gets no second one.
  if (continuation.length > 1 && continuation[0] === prefix) {
    return { context: [prefix], continuation: continuation.slice(1) };
  }
  return { context: [prefix], continuation };
}

/** Returns a continuation as an error quotes it: at most 60 characters or 12 ids. */
export function quoteContinuation({ continuation }: Pick<LogLikelihoodRequest, "continuation">): string {
  if (typeof continuation === "string")
    return JSON.stringify(continuation.length > 60 ? `${continuation.slice(0, 60)}…` : continuation);
  const ids = continuation.ids.slice(0, 12).join(", ");
  return `[${ids}${continuation.ids.length > 12 ? ", …" : ""}]`;
}

/** Returns the ids of a prompt, or the prefix token for an empty one. A chat ends where the assistant continues. */
export function encodePrompt(tokenizer: Tokenizer, prompt: Prompt): readonly number[] {
  return renderPrompt(tokenizer, prompt).ids;
}

/** Returns the ids of a prompt, as `encodePrompt`, and its text. */
export function renderPrompt(tokenizer: Tokenizer, prompt: Prompt): RenderedPrompt {
  const rendered = tokenizer.render(prompt, { ending: endingOf(prompt) });
  return rendered.ids.length > 0 ? rendered : { ...rendered, ids: [prefixToken(tokenizer)] };
}

function splitPair(tokenizer: Tokenizer, { context, continuation }: LogLikelihoodRequest): EncodedPair {
  if (typeof continuation !== "string") {
    const { ids } = tokenizer.render(context, { ending: endingOf(context) });
    return { context: ids, continuation: continuation.ids };
  }
  checkPrompt(context);
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

/** Returns `continue` for a chat whose last message is the assistant's: the model continues that message. */
export function endingOf(prompt: Prompt): "generation" | "continue" {
  checkPrompt(prompt);
  return "messages" in prompt && prompt.messages.at(-1)?.role === "assistant" ? "continue" : "generation";
}

/** The white space that Python's `str.rstrip` strips. */
const trailingWhiteSpace = new RegExp(`${pythonWhitespace}+$`, "u");

/**
 * Returns the token that replaces an empty context, so that a first token can be scored: the first special token that the
 * tokenizer adds to every text (Llama's begin-of-text), else its first stop id (GPT-2's end-of-text).
 * lm-evaluation-harness's `prefix_token_id` is bos, else eos.
 */
function prefixToken(tokenizer: Tokenizer): number {
  const prefix = tokenizer.encode("")[0] ?? tokenizer.stopIds[0];
  if (prefix !== undefined) return prefix;
  throw new PeriodicEvalError({
    code: "data",
    where: "tokenizer",
    got: "an empty context, and a tokenizer with neither a special token at the start nor a stop id",
    expected: "a token that can replace the empty context",
    fix: "Use a context of at least one token.",
  });
}
