import { PeriodicEvalError, type Message, type Tokenizer } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";
import type { BadRow, Fault } from "./bad-row.ts";
import type { Conversation, ParsedRow, PlainText } from "./forms.ts";
import { isBlank } from "./messages.ts";
import { encodeEnded, sharedStart } from "./token-ids.ts";

/** A row as token ids, and where the loss looks: eight bytes or fewer a token. */
export interface TrainingRow {
  readonly where: string;
  readonly ids: Int32Array;
  /** Positions of the tokens to be predicted, ascending, each ≥ 1: nothing comes before the first token. */
  readonly scored: Int32Array;
  /** Tokens that there were before it was cut; null where it is whole. */
  readonly cutFrom: number | null;
}

/**
 * What the loss looks at: the assistant's turns (of a row with a prompt, those of the completion), the completion, or all
 * tokens.
 */
export type LossOn = "assistant" | "completion" | "full";

export interface RenderOptions {
  /** In tokens. */
  readonly maxLength: number;
  /** Whether a longer row is cut on the right, or reported. */
  readonly truncate: boolean;
  /** Null is `defaultLoss`. */
  readonly loss: LossOn | null;
}

/**
 * Of conversations, the assistant's turns; of text with a prompt, the completion; of plain text, all. TRL 1.x scores all
 * of a conversation, and of one with a prompt all that follows it, unless it is asked for `assistant_only_loss`.
 */
const defaultLoss = (row: ParsedRow): LossOn =>
  row.kind === "conversation" ? "assistant" : row.prompt === null ? "full" : "completion";

/**
 * Renders one row. A conversation goes through the chat template; text does not, and ends with the tokenizer's
 * end-of-sequence token, as TRL 1.x ends it, where there is one. A token that prompt and completion share is the
 * completion's; TRL takes as many from the front as the prompt alone has.
 *
 * @throws PeriodicEvalError `config` where the row has nothing that `loss` could look at, by its form.
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
      got: `${ids.length} tokens, and none to learn among the first ${kept}`,
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
  if (loss === "assistant" || (loss === "completion" && row.prompt === null)) throw wrongLoss(row, loss);
  if (row.text === "") return { reason: "empty", got: "a text without a character" };
  if (isBlank(row.text)) return { reason: "empty", got: "a text of white space alone" };
  const prompt = row.prompt ?? "";
  const ids = encodeEnded(tokenizer, prompt + row.text);
  const start = loss === "completion" ? sharedStart(tokenizer.encode(prompt), ids) : 0;
  return { ids, isScored: (position) => position >= start };
}

function ofConversation(tokenizer: Tokenizer, row: Conversation, loss: LossOn): Rendered | Fault {
  if (loss === "completion" && row.promptCount === null) throw wrongLoss(row, loss);
  const fault = silence(row, loss);
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
        got: "a template of which nobody can tell what the assistant spoke",
      };
    }
    const hasSpoken = prompt.some(({ role }) => role === "assistant");
    const start = hasSpoken ? tokensOf(prompt, "complete").length : 0;
    return { ids, isScored: (position) => position >= start && mask[position]! };
  } catch (error) {
    return { reason: "template_failed", got: errorMessage(error) };
  }
}

/** Why there is nothing to learn, whatever the template. */
function silence({ messages, promptCount }: Conversation, loss: LossOn): Fault | null {
  const learnt = messages
    .slice(promptCount ?? 0)
    .filter(({ role }) => loss === "full" || role === "assistant");
  if (learnt.length === 0 && loss !== "full") {
    return { reason: "no_assistant_turn", got: `only ${messages.map(({ role }) => role).join(", ")}` };
  }
  if (learnt.some(({ content }) => !isBlank(content))) return null;
  return {
    reason: "empty",
    got: loss === "full" ? "turns without a word" : "assistant turns without a word",
  };
}

function wrongLoss(row: ParsedRow, loss: LossOn): PeriodicEvalError {
  const form =
    row.kind === "conversation" ? "messages" : row.prompt === null ? "text" : "prompt and completion as text";
  const possible: readonly LossOn[] =
    row.kind === "conversation"
      ? ["assistant", "full"]
      : row.prompt === null
        ? ["full"]
        : ["completion", "full"];
  return new PeriodicEvalError({
    code: "config",
    where: "SFT config loss",
    got: `"${loss}" for the row ${row.where}, which has ${form}`,
    expected: possible.map((one) => `"${one}"`).join(" or "),
    fix: "Change it, leave it out for the form's own, or give rows of another form.",
  });
}
