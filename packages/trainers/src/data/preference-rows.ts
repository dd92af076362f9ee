import { isDeepStrictEqual } from "@periodic-eval/core/platform";
import type { Message } from "@periodic-eval/core";
import type { BadRow, Fault } from "./bad-row.ts";
import { describeValue } from "./describe-value.ts";
import { isBlank, parseMessages, parseText, repeatedTurn } from "./messages.ts";
import type { RowSource } from "./read-rows.ts";

/** A row in TRL's format: a prompt and two completions, of which `chosen` is preferred. */
export interface PreferenceRow {
  /**
   * Messages or a string; all three have the same type. Without a prompt of that type, `chosen` and `rejected` are whole
   * conversations or strings, and the prompt is what both begin with.
   */
  readonly prompt?: readonly Message[] | string;
  readonly chosen: readonly Message[] | string;
  readonly rejected: readonly Message[] | string;
  /** Σ log p of the completion under the reference, in nats; read if `reference` is `"precomputed"`. */
  readonly ref_chosen_logps?: number;
  readonly ref_rejected_logps?: number;
}

export type PreferenceSource = RowSource<PreferenceRow>;

/** A valid row. */
export interface Preference {
  readonly where: string;
  readonly prompt: readonly Message[] | string;
  readonly chosen: readonly Message[] | string;
  readonly rejected: readonly Message[] | string;
  readonly reference: { readonly chosen: number; readonly rejected: number } | null;
}

/**
 * Parses a row, or returns why it is bad.
 *
 * @param isPrecomputed Whether the row must have the reference's log-probs.
 */
export function parsePreference(value: unknown, where: string, isPrecomputed: boolean): Preference | BadRow {
  const given = (typeof value === "object" && value !== null ? value : {}) as Readonly<
    Record<string, unknown>
  >;
  const parts = withPrompt({
    prompt: given["prompt"],
    chosen: given["chosen"],
    rejected: given["rejected"],
  });
  const answers = parseParts(parts) ?? unknownForm(value, parts);
  if ("reason" in answers) return { where, ...answers };
  if (!isPrecomputed) return { where, ...answers, reference: null };
  const { ref_chosen_logps: chosen, ref_rejected_logps: rejected } = given;
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
  return { where, ...answers, reference: { chosen, rejected } };
}

/** Rounding can lift a sum of log-probs this far above 0, in nats. */
const roundedZero = 1e-3;

const isLogProb = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

const partNames = ["prompt", "chosen", "rejected"] as const;
type Parts<T> = Readonly<Record<(typeof partNames)[number], T>>;

/**
 * Splits `chosen` and `rejected` after their common beginning if the prompt is missing or of another type, as TRL 1.16.0's
 * `maybe_extract_prompt`. A space before the first difference belongs to the completions. Returns other parts unchanged.
 */
function withPrompt(parts: Parts<unknown>): Parts<unknown> {
  const { prompt, chosen, rejected } = parts;
  if (typeof chosen === "string" && typeof rejected === "string") {
    if (typeof prompt === "string") return parts;
    const found = commonLength([...chosen], [...rejected]);
    const text = [...chosen].slice(0, found).join("").replace(/ $/, "");
    return text === "" ? parts : splitAt(text.length, chosen, rejected);
  }
  if (Array.isArray(prompt) || !Array.isArray(chosen) || !Array.isArray(rejected)) return parts;
  const found = commonLength(chosen, rejected);
  return found === 0 ? parts : splitAt<readonly unknown[]>(found, chosen, rejected);
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
function commonLength(one: readonly unknown[], other: readonly unknown[]): number {
  const most = Math.max(0, Math.min(one.length, other.length) - 1);
  let length = 0;
  while (length < most && isDeepStrictEqual(one[length], other[length])) length += 1;
  return length;
}

/** Returns null if the parts are neither all arrays nor all strings. */
function parseParts(parts: Parts<unknown>): Parts<string> | Parts<readonly Message[]> | Fault | null {
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

function parseChats(parts: Parts<readonly unknown[]>): Parts<readonly Message[]> | Fault {
  const chats: Partial<Record<(typeof partNames)[number], readonly Message[]>> = {};
  for (const name of partNames) {
    if (parts[name].length === 0) return { reason: "empty", got: `no messages in ${name}` };
    const messages = parseMessages(parts[name], name === "prompt" ? 0 : parts.prompt.length);
    if ("reason" in messages) return { ...messages, got: `${name}, ${messages.got}` };
    const [first] = messages;
    if (name !== "prompt" && first!.role !== "assistant")
      return { reason: "no_assistant_turn", got: `${name} that begins with the role ${first!.role}` };
    if (name !== "prompt" && isBlank(first!.content))
      return { reason: "empty", got: `${name} with an empty first turn` };
    const repeated = repeatedTurn([...(chats.prompt ?? []), ...messages]);
    if (repeated !== null) return { ...repeated, got: `${name}: ${repeated.got}` };
    chats[name] = messages;
  }
  return chats as Parts<readonly Message[]>;
}

function unknownForm(value: unknown, parts: Parts<unknown>): Fault {
  const isSome = Object.values(parts).some((part) => part !== undefined);
  const got = isSome
    ? partNames.map((name) => `${name} ${describeValue(parts[name])}`).join(", ")
    : describeValue(value);
  const expected = "prompt, chosen and rejected, three arrays of messages or three strings";
  return { reason: "unknown_form", got: `${got} instead of ${expected}` };
}
