import type { RenderedPrompt, TemplateChat, Tokenizer, PeriodicEvalError } from "@periodic-eval/contracts";
import { appendedIds, withoutAppended } from "@periodic-eval/core/model";
import { byteLength, spell, tokenByteRanges, type Codec } from "./align.ts";
import type { AnswerText } from "./answers.ts";
import type { ChatRenderer } from "./chat.ts";

/**
 * Returns the `render` of a tokenizer with this codec and these chat templates.
 *
 * @param noTemplate Returns the error for a chat if there is no template.
 */
function promptRenderer(
  codec: Codec,
  rendererFor: TokenizerParts["rendererFor"],
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
    const chat: TemplateChat = prompt;
    const { messages, system = "omit", tools = null, templateKwargs: kwargs = {} } = chat;
    const renderChat = rendererFor(tools !== null);
    if (renderChat === null) throw noTemplate();
    const tokenStart = (text: string, position: number) => specialStart(codec, text, position);
    const options = { kwargs, tools, training, tokenStart };
    const { text, spoken, isRewritten } = renderChat(messages, system, ending, options);
    const ids = codec.encode(text, false);
    const assistantMask = maskOf(codec, text, ids, spoken);
    return {
      text,
      ids,
      assistantMask,
      ...(spoken !== null && assistantMask === null && { isUnaligned: true }),
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
  /** Returns null if there is no chat template for such a chat. */
  readonly rendererFor: (hasTools: boolean) => ChatRenderer | null;
  readonly noTemplate: () => PeriodicEvalError;
}

/** Returns a tokenizer, which also stops at the special token that its template writes after an assistant's turn. */
export function tokenizerWith(codec: Codec, parts: TokenizerParts): Tokenizer {
  const { fingerprint, eosId, endIds, rendererFor, noTemplate } = parts;
  const renderChat = rendererFor(false) ?? rendererFor(true);
  const endOfTurn = renderChat && endOfTurnId(codec, renderChat);
  return {
    fingerprint,
    vocabSize: codec.vocabSize,
    stopIds: [...new Set([...endIds, eosId, endOfTurn])].filter((id) => id !== null),
    eosId,
    encode: (text, { specialTokens = true } = {}) => codec.encode(text, specialTokens),
    decode: (ids, { specialTokens = true } = {}) => codec.decode(ids, specialTokens),
    render: promptRenderer(codec, rendererFor, noTemplate),
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

/**
 * Marks tokens with at least one byte of the assistant, as `return_assistant_tokens_mask` of transformers. Null if the template
 * does not reveal the answers, or if the tokens spell another text.
 */
function maskOf(
  codec: Codec,
  text: string,
  ids: readonly number[],
  spoken: AnswerText["spoken"],
): boolean[] | null {
  if (spoken === null) return null;
  if (spoken.length === 0) return ids.map(() => false);
  const spelled = spell(codec, text);
  const ranges = tokenByteRanges(codec, spelled, ids);
  if (ranges === null) return null;
  const byteAt = (position: number) => byteLength(spelled.text.slice(0, spelled.positionOf(position)));
  const spans = spoken.map(([start, end]) => [byteAt(start), byteAt(end)] as const);
  return ranges.map(([start, end]) => spans.some(([from, to]) => start < to && end > from));
}

/** Returns the special token that a template writes after an assistant's turn; null if there is none. */
function endOfTurnId(codec: Codec, renderChat: ChatRenderer): number | null {
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
