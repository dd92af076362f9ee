import type { Message, PeriodicEvalError, Tokenizer } from "@periodic-eval/core";
import { configError, errorMessage } from "@periodic-eval/core/internal";
import type { BadRow, Fault } from "./bad-row.ts";
import type { Conversation, ParsedRow, PlainText } from "./forms.ts";
import { isBlank } from "./messages.ts";
import { encodeEnded, sharedStart } from "./token-ids.ts";

/** A row as token ids with its scored positions: at most eight bytes per token. */
export interface TrainingRow {
  readonly where: string;
  readonly ids: Int32Array;
  /** Positions of the scored tokens, ascending, each ≥ 1: no token precedes the first. */
  readonly scored: Int32Array;
  /** Tokens before truncation; null if the row is complete. */
  readonly cutFrom: number | null;
}

/**
 * The tokens that the loss covers: the assistant's turns (those of the completion, in a row with a prompt), the completion, or
 * all tokens.
 */
export type LossOn = "assistant" | "completion" | "full";

export interface RenderOptions {
  /** Maximum tokens per row. */
  readonly maxLength: number;
  /** Whether a longer row is cut on the right instead of reported. */
  readonly truncate: boolean;
  /** Null uses `defaultLoss`. */
  readonly loss: LossOn | null;
}

/**
 * The assistant's turns for conversations, the completion for text with a prompt, everything for plain text. TRL 1.x scores all
 * tokens of a conversation, or everything after its prompt, unless `assistant_only_loss` is set.
 */
const defaultLoss = (row: ParsedRow): LossOn =>
  row.kind === "conversation" ? "assistant" : row.prompt === null ? "full" : "completion";

/**
 * Renders one row. A conversation goes through the chat template. Text does not; it ends with the tokenizer's end-of-sequence
 * token, if it has one, as in TRL 1.x. A token that spans prompt and completion counts as completion; TRL instead counts
 * the tokens of the prompt alone.
 *
 * @throws PeriodicEvalError `config` if `loss` does not fit the row's form.
 */
export function renderRow(
  tokenizer: Tokenizer,
  row: ParsedRow,
  { maxLength, truncate, loss: given }: RenderOptions,
): TrainingRow | BadRow {
  const { where } = row;
  const loss = given ?? defaultLoss(row);
  const rendered = row.kind === "text" ? ofText(tokenizer, row, loss) : ofConversation(tokenizer, row, loss);
  if ("reason" in rendered) return { where, ...rendered };
  const { ids, isScored } = rendered;
  if (ids.length > maxLength && !truncate) {
    return { where, reason: "too_long", got: `${ids.length} tokens, ${maxLength} fit` };
  }
  const kept = Math.min(ids.length, maxLength);
  const scored: number[] = [];
  for (let i = 1; i < kept; i += 1) if (isScored(i)) scored.push(i);
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
      got: `${ids.length} tokens, with no scored token among the first ${kept}`,
    };
  }
  return {
    where,
    reason: "empty",
    got: loss === "assistant" ? "no token of an assistant turn" : "no token to predict",
  };
}

interface Rendered {
  readonly ids: readonly number[];
  isScored(position: number): boolean;
}

function ofText(tokenizer: Tokenizer, row: PlainText, loss: LossOn): Rendered | Fault {
  if (loss === "assistant" || (loss === "completion" && row.prompt === null)) throw lossError(row, loss);
  if (row.text === "") return { reason: "empty", got: "an empty text" };
  if (isBlank(row.text)) return { reason: "empty", got: "only white space" };
  const prompt = row.prompt ?? "";
  const ids = encodeEnded(tokenizer, prompt + row.text);
  const start = loss === "completion" ? sharedStart(tokenizer.encode(prompt), ids) : 0;
  return { ids, isScored: (position) => position >= start };
}

function ofConversation(tokenizer: Tokenizer, row: Conversation, loss: LossOn): Rendered | Fault {
  if (loss === "completion" && row.promptCount === null) throw lossError(row, loss);
  const fault = emptyFault(row, loss);
  if (fault !== null) return fault;
  const prompt = row.messages.slice(0, row.promptCount ?? 0);
  try {
    const { ids, assistantMask: mask } = tokenizer.render({ messages: row.messages }, { ending: "complete" });
    const tokensOf = (messages: readonly Message[], ending: "complete" | "generation") =>
      messages.length === 0 ? [] : tokenizer.render({ messages }, { ending }).ids;
    if (loss === "full") return { ids, isScored: () => true };
    if (loss === "completion") {
      const start = sharedStart(tokensOf(prompt, "generation"), ids);
      return { ids, isScored: (position) => position >= start };
    }
    if (mask === null) {
      return {
        reason: "template_failed",
        got: "a template that does not mark the assistant's tokens",
      };
    }
    const hasSpoken = prompt.some(({ role }) => role === "assistant");
    const start = hasSpoken ? tokensOf(prompt, "complete").length : 0;
    return { ids, isScored: (position) => position >= start && mask[position]! };
  } catch (error) {
    return { reason: "template_failed", got: errorMessage(error) };
  }
}

/** Describes a conversation that has nothing to learn with any template. */
function emptyFault({ messages, promptCount }: Conversation, loss: LossOn): Fault | null {
  const learnt = messages
    .slice(promptCount ?? 0)
    .filter(({ role }) => loss === "full" || role === "assistant");
  if (learnt.length === 0 && loss !== "full") {
    return { reason: "no_assistant_turn", got: `only ${messages.map(({ role }) => role).join(", ")}` };
  }
  if (learnt.some(({ content }) => !isBlank(content))) return null;
  return {
    reason: "empty",
    got: loss === "full" ? "turns without text" : "assistant turns without text",
  };
}

function lossError(row: ParsedRow, loss: LossOn): PeriodicEvalError {
  const form =
    row.kind === "conversation" ? "messages" : row.prompt === null ? "text" : "prompt and completion as text";
  const possible: readonly LossOn[] =
    row.kind === "conversation"
      ? ["assistant", "full"]
      : row.prompt === null
        ? ["full"]
        : ["completion", "full"];
  return configError({
    where: "SFT config",
    path: ["loss"],
    got: `"${loss}" for the row ${row.where}, which has ${form}`,
    expected: possible.map((one) => `"${one}"`).join(" or "),
    fix: "Change it, remove it to use the default of each row's form, or use rows of another form.",
  });
}
