import { errorMessage, sharedStart } from "@periodic-eval/contracts/options";
import type { TemplateMessage, Tokenizer } from "@periodic-eval/core";
import { isDeepStrictEqual } from "@periodic-eval/store/platform";
import { type BadRow, type Fault, describeValue } from "./bad-row.ts";
import {
  isBlank,
  parseMessages,
  parseTemplateColumns,
  parseText,
  saysSomething,
  templateColumns,
  type Columns,
  type TemplateColumns,
  type TemplateInputs,
} from "./messages.ts";
import type { ParsedRow } from "./forms.ts";
import type { RowSource } from "./read-rows.ts";
import type { RenderOptions } from "./render-row.ts";
import { lostNumber, encodeEnded } from "./token-ids.ts";

/** A row in TRL's format: a prompt and two completions, of which `chosen` is preferred. */
export interface PreferenceRow extends TemplateColumns {
  /**
   * Messages or a string; all three have the same type. Without a prompt of that type, `chosen` and `rejected` are whole
   * conversations or strings, and the prompt is what both begin with.
   */
  readonly prompt?: readonly TemplateMessage[] | string;
  readonly chosen: readonly TemplateMessage[] | string;
  readonly rejected: readonly TemplateMessage[] | string;
  /** Σ log p of the completion under the reference, in nats; read if `reference` is `"precomputed"`. */
  readonly ref_chosen_logps?: number;
  readonly ref_rejected_logps?: number;
}

export type PreferenceSource = RowSource<PreferenceRow>;

/** A valid row. */
export interface Preference extends TemplateInputs {
  readonly where: string;
  readonly kind: ParsedRow["kind"];
  /** Non-empty columns that are not used. */
  readonly unused: readonly string[];
  /** Whether the prompt is the common beginning of both answers. */
  readonly isPromptShared: boolean;
  readonly prompt: readonly TemplateMessage[] | string;
  readonly chosen: readonly TemplateMessage[] | string;
  readonly rejected: readonly TemplateMessage[] | string;
  readonly reference: { readonly chosen: number; readonly rejected: number } | null;
}

/**
 * Parses a row, or returns why it is bad.
 *
 * @param row Where it is, and whether it must have the reference's log-probs.
 */
export function parsePreference(
  value: unknown,
  { where, isPrecomputed }: { readonly where: string; readonly isPrecomputed: boolean },
): Preference | BadRow {
  const columns = (typeof value === "object" && value !== null ? value : {}) as Columns;
  const parts = withPrompt(columns);
  const answers = parseAnswers(parts, columns) ?? unknownForm(value, parts);
  if ("reason" in answers) return { where, ...answers };
  const isPromptShared = parts.prompt !== columns["prompt"];
  const kind = typeof answers.prompt === "string" ? ("text" as const) : ("conversation" as const);
  const used: readonly string[] = [
    ...partNames.filter((name) => name !== "prompt" || !isPromptShared),
    ...(kind === "text" ? [] : templateColumns),
    ...(isPrecomputed ? ["ref_chosen_logps", "ref_rejected_logps"] : []),
  ];
  const unused = Object.keys(columns).filter((name) => columns[name] != null && !used.includes(name));
  const row = { where, kind, unused, isPromptShared, ...answers };
  if (!isPrecomputed) return { ...row, reference: null };
  const { ref_chosen_logps: chosen, ref_rejected_logps: rejected } = columns;
  if (!isLogProb(chosen) || !isLogProb(rejected)) {
    return { where, reason: "unknown_form", got: "no numbers ref_chosen_logps and ref_rejected_logps" };
  }
  for (const [name, value] of [
    ["ref_chosen_logps", chosen],
    ["ref_rejected_logps", rejected],
  ] as const)
    if (value > roundedZero)
      return {
        where,
        reason: "broken_reference",
        got: `${name} ${value}, above 0, the log-prob of a certain text`,
      };
  return { ...row, reference: { chosen, rejected } };
}

/** Rounding can lift a sum of log-probs this far above 0, in nats. */
const roundedZero = 1e-3;

const isLogProb = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

const partNames = ["prompt", "chosen", "rejected"] as const;
type Parts<T> = Readonly<Record<(typeof partNames)[number], T>>;
type Answers = (Parts<string> | Parts<readonly TemplateMessage[]>) & TemplateInputs;

/** Returns null if the parts are neither all arrays nor all strings. */
function parseAnswers(split: Parts<unknown>, columns: Columns): Answers | Fault | null {
  const parts = parseParts(split);
  if (parts === null || "reason" in parts) return parts;
  const inputs = parseTemplateColumns(columns);
  return "reason" in inputs ? inputs : { ...parts, ...inputs };
}

/**
 * Splits `chosen` and `rejected` after their common beginning if the prompt is missing or of another type, as TRL 1.16.0's
 * `maybe_extract_prompt`. A space before the first difference belongs to the completions. Returns other parts unchanged.
 */
function withPrompt({ prompt, chosen, rejected }: Columns): Parts<unknown> {
  const parts = { prompt, chosen, rejected };
  if (typeof chosen === "string" && typeof rejected === "string") {
    if (typeof prompt === "string") return parts;
    const shared = commonLength([...chosen], [...rejected]);
    const text = [...chosen].slice(0, shared).join("").replace(/ $/, "");
    return text === "" ? parts : splitAt(text.length, chosen, rejected);
  }
  if (Array.isArray(prompt) || !Array.isArray(chosen) || !Array.isArray(rejected)) return parts;
  const shared = commonLength(chosen, rejected);
  return shared === 0 ? parts : splitAt<readonly unknown[]>(shared, chosen, rejected);
}

const splitAt = <T extends string | readonly unknown[]>(
  at: number,
  chosen: T,
  rejected: T,
): Parts<unknown> => ({
  prompt: chosen.slice(0, at),
  chosen: chosen.slice(at),
  rejected: rejected.slice(at),
});

/** Returns how many elements two arrays begin with in common; leaves at least one of each. */
function commonLength(a: readonly unknown[], b: readonly unknown[]): number {
  const most = Math.max(0, Math.min(a.length, b.length) - 1);
  let length = 0;
  while (length < most && isDeepStrictEqual(a[length], b[length])) length += 1;
  return length;
}

/** Returns null if the parts are neither all arrays nor all strings. */
function parseParts(parts: Parts<unknown>): Parts<string> | Parts<readonly TemplateMessage[]> | Fault | null {
  const all = Object.values(parts);
  if (all.every((part) => typeof part === "string")) return parseTexts(parts as Parts<string>);
  return all.every(Array.isArray) ? parseChats(parts as Parts<readonly unknown[]>) : null;
}

function parseTexts(parts: Parts<string>): Parts<string> | Fault {
  for (const name of partNames) {
    if (isBlank(parts[name])) return { reason: "empty", got: `a ${name} without text` };
    const text = parseText(parts[name]);
    if (typeof text !== "string") return { ...text, got: `${name}: ${text.got}` };
  }
  return parts;
}

function parseChats(parts: Parts<readonly unknown[]>): Parts<readonly TemplateMessage[]> | Fault {
  const chats: Partial<Record<(typeof partNames)[number], readonly TemplateMessage[]>> = {};
  for (const name of partNames) {
    if (parts[name].length === 0) return { reason: "empty", got: `no messages in ${name}` };
    const messages = parseMessages(parts[name]);
    if ("reason" in messages) return { ...messages, got: `${name}, ${messages.got}` };
    const learnt = messages.filter(({ role }) => role === "assistant");
    if (name !== "prompt" && learnt.length === 0)
      return { reason: "no_assistant_turn", got: `${name} without a turn of the role assistant` };
    if (name !== "prompt" && !learnt.some(saysSomething))
      return { reason: "empty", got: `${name} without text` };
    chats[name] = messages;
  }
  return chats as Parts<readonly TemplateMessage[]>;
}

function unknownForm(value: unknown, parts: Parts<unknown>): Fault {
  const isSome = Object.values(parts).some((part) => part !== undefined);
  const got = isSome
    ? partNames.map((name) => `${name} ${describeValue(parts[name])}`).join(", ")
    : describeValue(value);
  const expected = "prompt, chosen and rejected, three arrays of messages or three strings";
  return { reason: "unknown_form", got: `${got} instead of ${expected}` };
}

/** A prompt and one of its completions. */
interface PreferenceSequence {
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
  { where, prompt, chosen, rejected, reference, tools, templateKwargs }: Preference,
  { maxLength, truncate }: Omit<RenderOptions, "loss">,
): PreferencePair | BadRow {
  const inputs: TemplateInputs = { tools, templateKwargs };
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
  const [better, worse] = sequences as [PreferenceSequence, PreferenceSequence];
  if (better.ids.length === worse.ids.length && sharedStart(better.ids, worse.ids) === better.ids.length)
    return { where, reason: "no_preference", got: "the same tokens chosen and rejected" };
  return {
    where,
    chosen: better,
    rejected: worse,
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
