import type { TemplateMessage, Tokenizer } from "@periodic-eval/core";
import { errorMessage, sharedStart } from "@periodic-eval/contracts/options";
import type { BadRow, Fault } from "./bad-row.ts";
import { lostNumber } from "./lost-number.ts";
import type { TemplateInputs } from "./messages.ts";
import type { Preference } from "./preference-rows.ts";
import type { RenderOptions } from "./render-row.ts";
import { encodeEnded } from "./token-ids.ts";

/** A prompt and one of its completions. */
export interface PreferenceSequence {
  readonly ids: Int32Array;
  /** Positions of the completion's tokens, ascending. */
  readonly scored: Int32Array;
}

export interface PreferencePair {
  readonly where: string;
  readonly chosen: PreferenceSequence;
  readonly rejected: PreferenceSequence;
  /** Precomputed log-probs of the reference, in nats; null for a row without them. */
  readonly reference: { readonly chosen: number; readonly rejected: number } | null;
  /** Tokens of the longer sequence before truncation; null if both are complete. */
  readonly cutFrom: number | null;
  /** Tokens at the end of the prompt alone that the sequences do not have. */
  readonly promptTail: number;
}

/**
 * Renders both sequences of a pair as TRL 1.16.0 does: the prompt with its generation prompt, and the completion, of which
 * every token is scored. The completion begins at the first token where prompt and sequence differ, for both sequences at
 * the earlier of the two positions. A text completion without an end token gets one.
 */
export function renderPreference(
  tokenizer: Tokenizer,
  { where, prompt, chosen, rejected, reference, ...inputs }: Preference,
  { maxLength, truncate }: Omit<RenderOptions, "loss">,
): PreferencePair | BadRow {
  let encoded: readonly [prompt: readonly number[], chosen: readonly number[], rejected: readonly number[]];
  try {
    const start = encodePrompt(tokenizer, prompt, inputs);
    const [first, second] = [chosen, rejected].map((completion) =>
      encodeWhole(tokenizer, { prompt, completion }, inputs),
    ) as [readonly number[] | Fault, readonly number[] | Fault];
    if ("reason" in first) return { where, ...first };
    if ("reason" in second) return { where, ...second };
    encoded = [start, first, second];
  } catch (error) {
    return { where, reason: "template_failed", got: errorMessage(error) };
  }
  const [promptIds, ...both] = encoded;
  // No token precedes the first, so it cannot be predicted.
  const start = Math.max(1, Math.min(...both.map((ids) => sharedStart(promptIds, ids))));
  const longest = Math.max(...both.map(({ length }) => length));
  if (longest > maxLength && !truncate)
    return { where, reason: "too_long", got: `${longest} tokens, ${maxLength} fit` };
  const sequences = both.map((ids) => sequenceOf(ids.slice(0, maxLength), start));
  if (sequences.some(({ scored }) => scored.length === 0)) {
    const fits = longest <= maxLength;
    return fits
      ? { where, reason: "empty", got: "a completion without a token" }
      : { where, reason: "too_long", got: `a prompt of ${start} tokens, ${maxLength} fit` };
  }
  const [one, other] = sequences as [PreferenceSequence, PreferenceSequence];
  if (one.ids.length === other.ids.length && sharedStart(one.ids, other.ids) === one.ids.length)
    return { where, reason: "no_preference", got: "the same tokens chosen and rejected" };
  return {
    where,
    chosen: one,
    rejected: other,
    reference,
    cutFrom: longest > maxLength ? longest : null,
    promptTail: Math.max(0, promptIds.length - start),
  };
}

type Part = readonly TemplateMessage[] | string;

const encodePrompt = (tokenizer: Tokenizer, prompt: Part, inputs: TemplateInputs): readonly number[] =>
  typeof prompt === "string"
    ? tokenizer.encode(prompt)
    : tokenizer.render({ messages: prompt, ...inputs }, { ending: "generation" }).ids;

function encodeWhole(
  tokenizer: Tokenizer,
  { prompt, completion }: { readonly prompt: Part; readonly completion: Part },
  inputs: TemplateInputs,
): readonly number[] | Fault {
  if (typeof prompt === "string") return encodeEnded(tokenizer, prompt + (completion as string));
  const messages = [...prompt, ...(completion as readonly TemplateMessage[])];
  const rendered = tokenizer.render({ messages, ...inputs }, { ending: "complete" });
  return lostNumber(tokenizer, rendered) ?? rendered.ids;
}

const sequenceOf = (ids: readonly number[], start: number): PreferenceSequence => ({
  ids: Int32Array.from(ids),
  scored: Int32Array.from({ length: Math.max(0, ids.length - start) }, (_, i) => start + i),
});
