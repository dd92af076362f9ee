import type { Message } from "@periodic-eval/core";
import type { BadRow, BadRowReason } from "./bad-row.ts";
import { abbreviated, faultOf, isList } from "./conversations.ts";

/** A row as TRL writes it: what was said before, and two answers of which the first is preferred. */
export interface PreferenceRow {
  /** Messages, or a text; the answers are then likewise. */
  readonly prompt: readonly Message[] | string;
  readonly chosen: readonly Message[] | string;
  readonly rejected: readonly Message[] | string;
  /** Σ log p of the completion under the reference, in nats; read where `reference` is `"precomputed"`. */
  readonly ref_chosen_logps?: number;
  readonly ref_rejected_logps?: number;
}

/** JSON Lines on disk, one row a line, or the rows themselves. */
export type PreferenceSource = string | readonly PreferenceRow[];

/** A row in which nothing is amiss. */
export interface Preference {
  readonly where: string;
  readonly prompt: readonly Message[] | string;
  readonly chosen: readonly Message[] | string;
  readonly rejected: readonly Message[] | string;
  readonly reference: { readonly chosen: number; readonly rejected: number } | null;
}

/** @param isPrecomputed whether the row must tell the reference's log-probs */
export function parsePreference(row: unknown, where: string, isPrecomputed: boolean): Preference | BadRow {
  const bad = (reason: BadRowReason, got: string): BadRow => ({ where, reason, got });
  const given = (row ?? {}) as Readonly<Record<string, unknown>>;
  const { prompt, chosen, rejected } = given;
  const parts = { prompt, chosen, rejected };
  const isText = Object.values(parts).every((part) => typeof part === "string");
  if (!isText && !Object.values(parts).every(isList)) {
    const keys = Object.entries(given).map(([key, value]) => `${key} (${kindOf(value)})`);
    return bad(
      "unknown_form",
      `${keys.join(", ") || abbreviated(JSON.stringify(row) ?? "nothing")} instead of prompt, chosen and rejected, three lists of messages or three texts`,
    );
  }
  const fault = isText ? faultOfTexts(parts) : faultOfChats(parts as Chats);
  if (fault !== null) return bad(...fault);
  if (!isPrecomputed) return { where, ...(parts as Chats), reference: null };
  const { ref_chosen_logps: forChosen, ref_rejected_logps: forRejected } = given;
  if (typeof forChosen !== "number" || typeof forRejected !== "number") {
    return bad("unknown_form", "no numbers ref_chosen_logps and ref_rejected_logps");
  }
  return { where, ...(parts as Chats), reference: { chosen: forChosen, rejected: forRejected } };
}

type Fault = readonly [reason: BadRowReason, got: string];
type Chats = Readonly<Record<"prompt" | "chosen" | "rejected", readonly Message[]>>;

function faultOfTexts(parts: Readonly<Record<string, unknown>>): Fault | null {
  const empty = Object.keys(parts).find((name) => parts[name] === "");
  return empty === undefined ? null : ["empty", `a ${empty} without a word`];
}

function faultOfChats(parts: Chats): Fault | null {
  for (const name of ["prompt", "chosen", "rejected"] as const) {
    const turns: readonly unknown[] = parts[name];
    if (turns.length === 0) return ["empty", `no messages in ${name}`];
    for (const [i, turn] of turns.entries()) {
      const fault = faultOf(turn, name === "prompt" ? i : parts.prompt.length + i);
      if (fault !== null) return ["broken_roles", `message ${i} of ${name}: ${fault}`];
    }
    if (name === "prompt") continue;
    const [first] = parts[name];
    if (first!.role !== "assistant") return ["no_assistant_turn", `${name} that begins with ${first!.role}`];
    if (first!.content === "") return ["empty", `${name} whose first turn is without a word`];
  }
  return null;
}

function kindOf(value: unknown): string {
  if (typeof value === "string") return "a text";
  if (isList(value)) return "a list";
  return value === null ? "null" : typeof value;
}
