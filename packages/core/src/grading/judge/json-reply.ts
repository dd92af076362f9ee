import { findJsonObjects, stringOf, type FoundObject, type FoundValue } from "./json-objects.ts";

export type ReplyFault = "empty" | "no_json_object" | "missing_key" | "not_numeric" | "out_of_range";

/** The scores of a judge's reply by name, each 0 to 100; or why the reply cannot be parsed. */
export type ParsedReply =
  | { readonly scores: Readonly<Record<string, number>> }
  | { readonly unparseable: ReplyFault };

/**
 * Parses the scores in a judge's reply. The last JSON object with all keys counts, even if its values are invalid: an earlier
 * object is never a fallback. If an object lacks a key, the objects inside it are searched. A score is a number, or a string
 * with a plain decimal number, from 0 to 100; it is neither rounded nor clamped. Never throws; takes time linear in the reply.
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
  // Adding 0 turns −0 into 0, also in JSON.
  return { scores: Object.fromEntries(values.map(([key, value]) => [key, value! + 0])) };
}

/** Searches from the end: the first object found with all keys, outside of any other such object, is the last one. */
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

/** Allows ASCII whitespace around the number, but no no-break space. */
const decimal = /^[ \t\n\v\f\r]*([+-]?[0-9]+(?:\.[0-9]+)?)[ \t\n\v\f\r]*$/;

function numberOf({ kind, text }: FoundValue): number | null {
  if (kind === "number") return Number(text);
  const decimalMatch = kind === "string" ? decimal.exec(stringOf(text)) : null;
  return decimalMatch === null ? null : Number(decimalMatch[1]);
}
