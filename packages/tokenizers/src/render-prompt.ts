import type { RenderedPrompt, TemplateChat, Tokenizer, PeriodicEvalError } from "@periodic-eval/contracts";
import { appendedIds, withoutAppended } from "@periodic-eval/core/model";
import { tokenByteRanges, type Codec } from "./align.ts";
import type { AnswerText } from "./answers.ts";
import type { chatRenderer } from "./chat.ts";

/**
 * Returns the `render` of a tokenizer with this codec and chat template.
 *
 * @param noTemplate Returns the error for a chat if there is no template.
 */
function promptRenderer(
  codec: Codec,
  renderChat: ReturnType<typeof chatRenderer> | null,
  noTemplate: () => PeriodicEvalError,
): Tokenizer["render"] {
  let appended: readonly number[] | null = null;
  const encodeText = (text: string) => {
    const ids = codec.encode(text, true);
    if (text !== "") appended ??= appendedIds(ids, codec.encode(text, false));
    return withoutAppended(ids, appended ?? []);
  };
  return (prompt, { ending = "generation", training = false } = {}): RenderedPrompt => {
    if ("ids" in prompt) return { text: null, ids: prompt.ids, assistantMask: null };
    if ("text" in prompt) return { text: prompt.text, ids: encodeText(prompt.text), assistantMask: null };
    if (renderChat === null) throw noTemplate();
    const chat: TemplateChat = prompt;
    const { messages, system = "omit", tools = null, templateKwargs: kwargs = {} } = chat;
    const tokenStart = (text: string, position: number) => specialStart(codec, text, position);
    const options = { kwargs, tools, training, tokenStart };
    const { text, spoken, isRewritten } = renderChat(messages, system, ending, options);
    const ids = codec.encode(text, false);
    return {
      text,
      ids,
      assistantMask: maskOf(codec, text, ids, spoken),
      ...(isRewritten && { isRewritten }),
    };
  };
}

/** The parts of a tokenizer besides its codec. */
interface TokenizerParts {
  readonly fingerprint: string;
  readonly eosId: number | null;
  /** Further ids that end a reply. */
  readonly endIds: readonly number[];
  /** Null if there is no chat template. */
  readonly renderChat: ReturnType<typeof chatRenderer> | null;
  readonly noTemplate: () => PeriodicEvalError;
}

/** Returns a tokenizer, which also stops at the special token that its template writes after an assistant's turn. */
export function tokenizerWith(codec: Codec, parts: TokenizerParts): Tokenizer {
  const { fingerprint, eosId, endIds, renderChat, noTemplate } = parts;
  const endOfTurn = renderChat && endOfTurnId(codec, renderChat);
  return {
    fingerprint,
    vocabSize: codec.vocabSize,
    stopIds: [...new Set([...endIds, eosId, endOfTurn])].filter((id) => id !== null),
    eosId,
    encode: (text, { specialTokens = true } = {}) => codec.encode(text, specialTokens),
    decode: (ids, { specialTokens = true } = {}) => codec.decode(ids, specialTokens),
    render: promptRenderer(codec, renderChat, noTemplate),
  };
}

/** Returns the start of the special token of `text` that contains the position, or the position. */
function specialStart(codec: Codec, text: string, position: number): number {
  for (const id of codec.specialIds) {
    const token = codec.tokenOf(id) ?? "";
    const at = text.lastIndexOf(token, position - 1);
    if (at >= 0 && at + token.length > position) return at;
  }
  return position;
}

/** Marks tokens with at least one byte of the assistant, as `return_assistant_tokens_mask` of transformers. */
function maskOf(
  codec: Codec,
  text: string,
  ids: readonly number[],
  spoken: AnswerText["spoken"],
): boolean[] | null {
  if (spoken === null) return null;
  if (spoken.length === 0) return ids.map(() => false);
  const ranges = tokenByteRanges(codec, text, ids);
  if (ranges === null) return null;
  const spans = spoken.map(
    ([start, end]) => [byteLength(text.slice(0, start)), byteLength(text.slice(0, end))] as const,
  );
  return ranges.map(([start, end]) => spans.some(([from, to]) => start < to && end > from));
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** Returns the special token that a template writes after an assistant's turn; null if there is none. */
function endOfTurnId(codec: Codec, renderChat: ReturnType<typeof chatRenderer>): number | null {
  const spoken = "PROBE";
  const chat = [
    { role: "user", content: "Hello" },
    { role: "assistant", content: spoken },
  ];
  try {
    const { text } = renderChat(chat, "omit", "complete");
    const after = text.slice(text.lastIndexOf(spoken) + spoken.length);
    const first = codec.encode(after.trimStart(), false)[0];
    return first !== undefined && codec.specialIds.has(first) ? first : null;
  } catch {
    // Without support for such a chat, the end of a turn cannot be found this way.
    return null;
  }
}
