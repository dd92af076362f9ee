import {
  type BulkOptions,
  type BulkTokenizer,
  type LogLikelihoodRequest,
  type Prompt,
  type RenderedPrompt,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { pythonWhitespace, isRecord, quoteValue } from "@periodic-eval/contracts/options";
import { encodePrompts } from "./prompt-ids.ts";

export interface EncodedPair {
  /** At least one token. */
  readonly context: readonly number[];
  /** At least one token. */
  readonly continuation: readonly number[];
}

/**
 * Encodes contexts and their continuations, in at most five calls of the tokenizer.
 *
 * - Text: `_encode_pair` of lm-evaluation-harness 0.4. Trailing white space of the context moves to the continuation; the
 *   continuation is `encode(context + continuation)` after the length of `encode(context)`. Deviation: ids that the tokenizer
 *   appends to each text (`add_eos_token`) are left out; the harness would score them in place of the continuation.
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
export async function encodePairs(
  tokenizer: BulkTokenizer,
  requests: readonly LogLikelihoodRequest[],
  options: BulkOptions = {},
): Promise<readonly EncodedPair[]> {
  const rendered = await renderAll(
    tokenizer,
    requests.filter(isRendered).map(({ context }) => context),
    options,
  );
  const { pairs, prefix } = await withEncodings(tokenizer, options, (encode) => {
    const next = rendered.values();
    const split = requests.map((request) =>
      splitPair(encode, request, isRendered(request) ? next.next().value! : null),
    );
    const isPrefixed = split.some(({ context }) => context.length === 0);
    return { pairs: split, prefix: isPrefixed ? encode("", true) : [] };
  });
  return pairs.map(({ context, continuation }, at) => {
    if (continuation.length === 0) throw emptyContinuation(requests[at]!);
    if (context.length > 0) return { context, continuation };
    const start = prefixToken(tokenizer, prefix);
    // As in the harness, a continuation that starts with the prefix gets no second one.
    const isRepeated = continuation.length > 1 && continuation[0] === start;
    return { context: [start], continuation: isRepeated ? continuation.slice(1) : continuation };
  });
}

const emptyContinuation = (request: LogLikelihoodRequest) =>
  new PeriodicEvalError({
    code: "data",
    where: "logLikelihoods",
    got: `the continuation ${quoteContinuation(request)}, which adds no token to its context`,
    expected: "at least one token to score",
    fix: "Use a continuation that is not empty.",
  });

/** Returns a continuation as an error quotes it: at most 60 characters or 12 ids. */
export function quoteContinuation({ continuation }: Pick<LogLikelihoodRequest, "continuation">): string {
  if (typeof continuation === "string")
    return JSON.stringify(continuation.length > 60 ? `${continuation.slice(0, 60)}…` : continuation);
  const ids = continuation.ids.slice(0, 12).join(", ");
  return `[${ids}${continuation.ids.length > 12 ? ", …" : ""}]`;
}

/**
 * Returns prompts as text and ids; the prefix token for an empty one. A chat ends where the assistant continues. Calls the tokenizer
 * at most five times.
 */
export async function renderPrompts(
  tokenizer: BulkTokenizer,
  prompts: readonly Prompt[],
  options: BulkOptions = {},
): Promise<readonly RenderedPrompt[]> {
  const rendered = await renderAll(tokenizer, prompts, options);
  if (rendered.every(({ ids }) => ids.length > 0)) return rendered;
  const [encoded] = await encodePrompts(tokenizer, [""], options);
  return rendered.map((prompt) =>
    prompt.ids.length > 0 ? prompt : { ...prompt, ids: [prefixToken(tokenizer, encoded!)] },
  );
}

/** Renders prompts as they are, with one call for each ending. */
export async function renderAll(
  tokenizer: BulkTokenizer,
  prompts: readonly Prompt[],
  options: BulkOptions = {},
): Promise<readonly RenderedPrompt[]> {
  const endings = prompts.map(endingOf);
  const rendered = new Map<Prompt, RenderedPrompt>();
  for (const ending of new Set(endings)) {
    const some = [...new Set(prompts.filter((_, at) => endings[at] === ending))];
    const answers = await tokenizer.render(some, { ...options, ending });
    some.forEach((prompt, at) => rendered.set(prompt, answers[at]!));
  }
  return prompts.map((prompt) => rendered.get(prompt)!);
}

type Encode = (text: string, specialTokens: boolean) => readonly number[];

/** Calls `use` twice: to collect the texts that it encodes, without their ids, and with the ids. */
async function withEncodings<T>(
  tokenizer: BulkTokenizer,
  options: BulkOptions,
  use: (encode: Encode) => T,
): Promise<T> {
  const texts = { true: new Set<string>(), false: new Set<string>() };
  use((text, specialTokens) => {
    texts[`${specialTokens}`].add(text);
    return [];
  });
  const idsOf = async (specialTokens: boolean) => {
    const all = [...texts[`${specialTokens}`]];
    if (all.length === 0) return new Map<string, readonly number[]>();
    const ids = specialTokens
      ? await encodePrompts(tokenizer, all, options)
      : await tokenizer.encode(all, { ...options, specialTokens });
    return new Map(all.map((text, at) => [text, ids[at]!]));
  };
  const ids = { true: await idsOf(true), false: await idsOf(false) };
  return use((text, specialTokens) => ids[`${specialTokens}`].get(text)!);
}

const isRendered = ({ context, continuation }: LogLikelihoodRequest): boolean => {
  checkPrompt(context);
  return typeof continuation !== "string" || "messages" in context;
};

function splitPair(
  encode: Encode,
  { context, continuation }: LogLikelihoodRequest,
  rendered: RenderedPrompt | null,
): EncodedPair {
  if (typeof continuation !== "string") return { context: rendered!.ids, continuation: continuation.ids };
  const alone = () => encode(continuation, false);
  if ("ids" in context) return { context: context.ids, continuation: alone() };
  if ("text" in context) {
    const start = context.text.replace(trailingWhiteSpace, "");
    const whole = context.text + continuation;
    if (start === "") return { context: [], continuation: encode(whole, false) };
    const ids = encode(start, true);
    return { context: ids, continuation: encode(whole, true).slice(ids.length) };
  }
  const { text, ids } = rendered!;
  if (text === null) return { context: ids, continuation: alone() };
  const whole = encode(text + continuation, false);
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
 *
 * @param encoded The ids of the empty text.
 */
function prefixToken({ stopIds }: BulkTokenizer, encoded: readonly number[]): number {
  const prefix = encoded[0] ?? stopIds[0];
  if (prefix !== undefined) return prefix;
  throw new PeriodicEvalError({
    code: "data",
    where: "tokenizer",
    got: "an empty context, and a tokenizer with neither a special token at the start nor a stop id",
    expected: "a token that can replace the empty context",
    fix: "Use a context of at least one token.",
  });
}

/**
 * Requires that a prompt is an object: JavaScript passes a string where TypeScript would refuse it.
 *
 * @throws PeriodicEvalError `data` with the prompt that a string probably means.
 */
export function checkPrompt(prompt: Prompt, where = "prompt"): void {
  if (isRecord(prompt) && ["text", "ids", "messages"].some((key) => key in prompt)) return;
  const got = quoteValue(prompt);
  const content = typeof prompt === "string" ? got : '"…"';
  throw new PeriodicEvalError({
    code: "data",
    where,
    got,
    expected: "an object with messages, text or ids",
    fix: `Write { messages: [{ role: "user", content: ${content} }] } for a chat, or { text: ${content} } for raw text.`,
  });
}
