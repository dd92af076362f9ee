import type { Message, Tokenizer } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";
import type { BadRow } from "./bad-row.ts";
import type { Preference } from "./preference-rows.ts";
import type { RenderOptions } from "./render-row.ts";
import { encodeEnded, sharedStart } from "./token-ids.ts";

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
  /** Of a row that tells them; null otherwise. */
  readonly reference: { readonly chosen: number; readonly rejected: number } | null;
  /** Tokens that the longer one had before it was cut; null where both are whole. */
  readonly cutFrom: number | null;
  /** Tokens at the prompt's end that are not in the sequences: the template or tokenizer writes them only there. */
  readonly promptTail: number;
}

/**
 * Both sequences of a pair, as TRL 1.16.0 makes them: the prompt with its generation prompt, and what follows it up to the
 * end, of which every token is scored. The completion begins where prompt and sequence part, for both at the earlier of
 * the two places. A text's completion gets an end token where it has none.
 */
export function renderPreference(
  tokenizer: Tokenizer,
  { where, prompt, chosen, rejected, reference }: Preference,
  { maxLength, truncate }: Omit<RenderOptions, "loss">,
): PreferencePair | BadRow {
  let encoded: readonly [prompt: readonly number[], chosen: readonly number[], rejected: readonly number[]];
  try {
    encoded = [
      encodePrompt(tokenizer, prompt),
      encodeWhole(tokenizer, prompt, chosen),
      encodeWhole(tokenizer, prompt, rejected),
    ];
  } catch (error) {
    return { where, reason: "template_failed", got: errorMessage(error) };
  }
  const [promptIds, ...both] = encoded;
  // Nothing comes before the first token that could predict it.
  const start = Math.max(1, Math.min(...both.map((ids) => sharedStart(promptIds, ids))));
  const longest = Math.max(...both.map(({ length }) => length));
  if (longest > maxLength && !truncate)
    return { where, reason: "too_long", got: `${longest} tokens, ${maxLength} fit` };
  const sequences = both.map((ids) => sequenceOf(ids.slice(0, maxLength), start));
  if (sequences.some(({ scored }) => scored.length === 0)) {
    const fits = longest <= maxLength;
    return fits
      ? { where, reason: "empty", got: "a completion without a token of its own" }
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

const encodePrompt = (tokenizer: Tokenizer, prompt: readonly Message[] | string): readonly number[] =>
  typeof prompt === "string"
    ? tokenizer.encode(prompt)
    : tokenizer.render({ messages: prompt }, { ending: "generation" }).ids;

function encodeWhole(
  tokenizer: Tokenizer,
  prompt: readonly Message[] | string,
  completion: readonly Message[] | string,
): readonly number[] {
  if (typeof prompt !== "string") {
    const messages = [...prompt, ...(completion as readonly Message[])];
    return tokenizer.render({ messages }, { ending: "complete" }).ids;
  }
  return encodeEnded(tokenizer, prompt + (completion as string));
}

const sequenceOf = (ids: readonly number[], start: number): PreferenceSequence => ({
  ids: Int32Array.from(ids),
  scored: Int32Array.from({ length: Math.max(0, ids.length - start) }, (_, i) => start + i),
});
