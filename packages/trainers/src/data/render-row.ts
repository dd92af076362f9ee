import type { PeriodicEvalError, TemplateMessage, Tokenizer } from "@periodic-eval/core";
import { configError, errorMessage, sharedStart } from "@periodic-eval/contracts/options";
import type { BadRow, Fault } from "./bad-row.ts";
import type { Conversation, ParsedRow, PlainText } from "./forms.ts";
import { lostNumber, encodeEnded } from "./token-ids.ts";
import { isBlank, saysSomething } from "./messages.ts";

/** A row as token ids with its scored positions: at most eight bytes per token. */
export interface TrainingRow {
  readonly where: string;
  readonly ids: Int32Array;
  /** Positions of the scored tokens, ascending, each ≥ 1: no token precedes the first. */
  readonly scored: Int32Array;
  /** Tokens before truncation; null if the row is complete. */
  readonly cutFrom: number | null;
  /**
   * `"rewritten"` if earlier answers are written as the template writes the last one; `"whole"` if all tokens are scored, or all of
   * the completion, because the template does not reveal the answers. Null for other rows.
   */
  readonly form: "rewritten" | "whole" | null;
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
 * tokens of a conversation, or everything after its prompt, unless `assistant_only_loss` is set; with it, the tokens are those
 * of `"assistant"`.
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
  { maxLength, truncate, loss: requested }: RenderOptions,
): TrainingRow | BadRow {
  const { where } = row;
  const loss = requested ?? defaultLoss(row);
  const rendered =
    row.kind === "text"
      ? ofText(tokenizer, row, loss)
      : ofConversation(tokenizer, row, loss, { canScoreAll: requested === null });
  if ("reason" in rendered) return { where, ...rendered };
  const { ids, isScored, form = null } = rendered;
  if (ids.length > maxLength && !truncate) {
    return { where, reason: "too_long", got: `${ids.length} tokens, ${maxLength} fit` };
  }
  const length = Math.min(ids.length, maxLength);
  const scored: number[] = [];
  for (let i = 1; i < length; i += 1) if (isScored(i)) scored.push(i);
  if (scored.length > 0) {
    return {
      where,
      ids: Int32Array.from(ids.slice(0, length)),
      scored: Int32Array.from(scored),
      cutFrom: length < ids.length ? ids.length : null,
      form,
    };
  }
  if (length < ids.length) {
    return {
      where,
      reason: "too_long",
      got: `${ids.length} tokens, with no scored token among the first ${length}`,
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
  readonly form?: TrainingRow["form"];
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

/**
 * Renders a conversation as TRL 1.16.0 does: with its training template's text for `"assistant"`, with the template's own text for
 * other losses. A completion begins at the first token that differs from the prompt's.
 *
 * @param canScoreAll Whether a template that does not reveal the answers means that all tokens are scored, not that the row is bad.
 */
function ofConversation(
  tokenizer: Tokenizer,
  row: Conversation,
  loss: LossOn,
  { canScoreAll }: { readonly canScoreAll: boolean },
): Rendered | Fault {
  const { messages, promptCount, tools, templateKwargs } = row;
  if (loss === "completion" && promptCount === null) throw lossError(row, loss);
  const fault = emptyFault(row, loss);
  if (fault !== null) return fault;
  const training = loss === "assistant";
  const render = (
    some: readonly TemplateMessage[],
    ending: "complete" | "generation",
    asTraining = training,
  ) => tokenizer.render({ messages: some, tools, templateKwargs }, { ending, training: asTraining });
  const startOf = (ids: readonly number[], asTraining?: boolean) =>
    promptCount === null || promptCount === 0 || loss === "full"
      ? 0
      : sharedStart(render(messages.slice(0, promptCount), "generation", asTraining).ids, ids);
  try {
    const rendered = render(messages, "complete");
    const lost = lostNumber(tokenizer, rendered);
    if (lost !== null) return lost;
    const { ids, assistantMask: mask, isUnaligned = false, isRewritten = false } = rendered;
    if (!training || mask !== null) {
      const start = startOf(ids);
      const form = isRewritten ? ("rewritten" as const) : null;
      return { ids, isScored: (at) => at >= start && (!training || mask![at]!), form };
    }
    if (isUnaligned) {
      return {
        reason: "unaligned_tokens",
        got: 'tokens that differ from the text of the chat, so those of the assistant are unknown; replace characters without a token, use a tokenizer of loadTokenizer, or set loss to "full"',
      };
    }
    if (!canScoreAll) {
      return {
        reason: "template_failed",
        got: 'a template that does not reveal the assistant\'s tokens; mark them with {% generation %}, or set loss to "full"',
      };
    }
    const start = startOf(ids, false);
    return { ids, isScored: (at) => at >= start, form: "whole" };
  } catch (error) {
    return { reason: "template_failed", got: errorMessage(error) };
  }
}

/** Describes a conversation that has nothing to learn with any template. */
function emptyFault({ messages, promptCount }: Conversation, loss: LossOn): Fault | null {
  const completion = messages.slice(promptCount ?? 0);
  const learnt = completion.filter(({ role }) => loss === "full" || role === "assistant");
  if (learnt.length === 0 && loss !== "full") {
    const roles = [...new Set(completion.map(({ role }) => role))].join(", ");
    const where = promptCount === null ? "" : " in the completion";
    const got = `${roles === "" ? "no messages" : `only ${roles}`}${where}; name the role of the answers "assistant", or set loss to "full"`;
    return { reason: "no_assistant_turn", got };
  }
  if (learnt.some(saysSomething)) return null;
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
    expected: possible.map((value) => `"${value}"`).join(" or "),
    fix: "Change it, remove it to use the default of each row's form, or use rows of another form.",
  });
}
