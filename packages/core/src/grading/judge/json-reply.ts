import { findJsonObjects, stringOf, type FoundObject, type FoundValue } from "./json-objects.ts";

export type ReplyFault = "empty" | "no_json_object" | "missing_key" | "not_numeric" | "out_of_range";

/** The scores of a judge's reply, by name, each from 0 to 100; or why there are none. */
export type ParsedReply =
  | { readonly scores: Readonly<Record<string, number>> }
  | { readonly unparseable: ReplyFault };

/**
 * Reads the scores out of what a judge said. The last JSON object that has all keys wins, whether its values are
 * acceptable or not: an earlier one is never a fallback. Where an object lacks a key, those inside it are looked at.
 * A score is a number, or a string of one in plain decimals, from 0 to 100; it is neither rounded nor clamped.
 * Never throws, and is linear in the reply, whatever it holds.
 */
export function parseJudgeReply(reply: string, keys: readonly string[]): ParsedReply {
  if (reply.trim() === "") return { unparseable: "empty" };
  const objects = findJsonObjects(reply);
  if (objects.length === 0) return { unparseable: "no_json_object" };
  const candidate = lastCandidate(objects, keys);
  if (candidate === null) return { unparseable: "missing_key" };
  const values = keys.map((key) => [key, numberOf(candidate.members.get(key)!)] as const);
  if (values.some(([, value]) => value === null)) return { unparseable: "not_numeric" };
  if (values.some(([, value]) => !(value! >= 0 && value! <= 100))) return { unparseable: "out_of_range" };
  // −0 is 0, also where JSON is written.
  return { scores: Object.fromEntries(values.map(([key, value]) => [key, value! + 0])) };
}

/** Looks from the end: the first object met that has all keys, and stands in none that has, is the last one. */
function lastCandidate(objects: readonly FoundObject[], keys: readonly string[]): FoundObject | null {
  const waiting = [...objects];
  for (let object = waiting.pop(); object !== undefined; object = waiting.pop()) {
    const { members } = object;
    if (keys.every((key) => members.has(key))) return object;
    for (const { objects: inside } of members.values()) {
      for (const one of inside) waiting.push(one);
    }
  }
  return null;
}

/** Round it ASCII whitespace only: a no-break space is no part of a number. */
const decimal = /^[ \t\n\v\f\r]*([+-]?[0-9]+(?:\.[0-9]+)?)[ \t\n\v\f\r]*$/;

function numberOf({ kind, text }: FoundValue): number | null {
  if (kind === "number") return Number(text);
  const written = kind === "string" ? decimal.exec(stringOf(text)) : null;
  return written === null ? null : Number(written[1]);
}
