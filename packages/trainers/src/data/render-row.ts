import { messageOf, type Tokenizer } from "@periodic-eval/core";
import type { BadRow } from "./bad-row.ts";
import type { Conversation } from "./conversations.ts";

/** A conversation as token ids, and where the loss looks. */
export interface TrainingRow {
  readonly where: string;
  readonly ids: Int32Array;
  /** Positions of the tokens to be predicted, ascending, each ≥ 1: nothing comes before the first token. */
  readonly scored: Int32Array;
  /** Tokens that there were before it was cut; null where it is whole. */
  readonly cutFrom: number | null;
}

export interface RenderOptions {
  /** In tokens. */
  readonly maxLength: number;
  /** Whether a longer row is cut on the right, or reported. */
  readonly truncate: boolean;
}

/**
 * Renders one conversation through the chat template, scoring the tokens of assistant turns. Of a row with a prompt,
 * only what follows the prompt is scored, also where the prompt holds assistant turns.
 */
export function renderRow(
  tokenizer: Tokenizer,
  { where, messages, promptCount }: Conversation,
  { maxLength, truncate }: RenderOptions,
): TrainingRow | BadRow {
  let ids: readonly number[];
  let mask: readonly boolean[] | null;
  let promptTokens = 0;
  try {
    ({ ids, assistantMask: mask } = tokenizer.render({ messages }, { ending: "complete" }));
    if (messages.slice(0, promptCount).some(({ role }) => role === "assistant")) {
      promptTokens = tokenizer.render({ messages: messages.slice(0, promptCount) }, { ending: "complete" })
        .ids.length;
    }
  } catch (error) {
    return { where, reason: "template_failed", got: messageOf(error) };
  }
  if (mask === null) {
    return {
      where,
      reason: "template_failed",
      got: "a template of which nobody can tell what the assistant spoke",
    };
  }
  if (ids.length > maxLength && !truncate) {
    return { where, reason: "too_long", got: `${ids.length} tokens, ${maxLength} fit` };
  }
  const kept = Math.min(ids.length, maxLength);
  const scored: number[] = [];
  for (let i = Math.max(1, promptTokens); i < kept; i += 1) if (mask[i]) scored.push(i);
  if (scored.length > 0) {
    return {
      where,
      ids: Int32Array.from(ids.slice(0, kept)),
      scored: Int32Array.from(scored),
      cutFrom: kept < ids.length ? ids.length : null,
    };
  }
  if (kept < ids.length) {
    return {
      where,
      reason: "too_long",
      got: `${ids.length} tokens, and none to learn among the first ${kept}`,
    };
  }
  return { where, reason: "empty", got: "no token of an assistant turn" };
}
