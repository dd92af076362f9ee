import { modelMarkup, stripThinking, type ThinkingMarkup } from "../../model/thinking.ts";
import { findJsonObjects, type FoundObject, type FoundValue } from "./json-objects.ts";

/** `cut`: the reply ended in its thinking, or before it was certainly complete. */
export type ReplyFault = "empty" | "no_json_object" | "missing_key" | "not_numeric" | "out_of_range" | "cut";

/** The scores of a judge's reply by name, each 0 to 100; or why the reply cannot be parsed. */
export type ParsedReply =
  | { readonly scores: Readonly<Record<string, number>> }
  | { readonly unparseable: ReplyFault };

export interface ReplyEnding {
  /** `length`: the reply was cut off at its limit of tokens. Default `stop`. */
  readonly finish?: "stop" | "length";
  /** Whether the judge's template begins the thinking. Default false. */
  readonly isOpened?: boolean;
}

/**
 * Parses the scores in a judge's reply, outside of its thinking. The last JSON object with all keys counts, even if its values
 * are invalid: an earlier object is never a fallback. If an object lacks a key, the objects inside it are searched. Without
 * such an object, one in Python's notation counts, and for a single score a reply that is only its number (`Score: 85/100`).
 *
 * A score is a number, or a string with a plain decimal number, from 0 to 100; it is neither rounded nor clamped, and `/100` may
 * follow it, but no other scale. A reply that was cut off has scores only if it is one complete object and nothing else: what is
 * missing could have been another grade. Never throws; takes time linear in the reply.
 */
export function parseJudgeReply(
  reply: string,
  keys: readonly string[],
  { finish = "stop", isOpened = false }: ReplyEnding = {},
): ParsedReply {
  const text = stripThinking(reply, { isOpened, markup, quoted: findJsonObjects(reply, "loose") });
  if (text === null) return { unparseable: "cut" };
  const { objects, candidate } = candidateIn(text, keys);
  if (finish === "length" && (candidate === null || !isWhole(text, objects))) return { unparseable: "cut" };
  if (text.trim() === "") return { unparseable: "empty" };
  if (candidate !== null) return scoresOf(keys.map((key) => [key, numberOf(candidate.members.get(key)!)]));
  const number = keys.length === 1 ? onlyNumber(text) : null;
  if (number !== null) return scoresOf([[keys[0]!, number]]);
  return { unparseable: objects.length === 0 ? "no_json_object" : "missing_key" };
}

function scoresOf(values: readonly (readonly [key: string, value: number | null])[]): ParsedReply {
  if (values.some(([, value]) => value === null)) return { unparseable: "not_numeric" };
  if (values.some(([, value]) => !(value! >= 0 && value! <= 100))) return { unparseable: "out_of_range" };
  // Adding 0 turns −0 into 0, also in JSON.
  return { scores: Object.fromEntries(values.map(([key, value]) => [key, value! + 0])) };
}

/** Tags that prompts ask for, such as `<thinking>`, `<reasoning>` and `<scratchpad>`. */
const tagName = String.raw`([\w:-]{0,20}(?:think|thought|reason|reflect|analy[sz]|scratch|monolog)[\w:-]{0,20})`;
const markup: readonly ThinkingMarkup[] = [
  ...modelMarkup,
  [new RegExp(`<${tagName}(?:\\s[^<>]{0,200})?>`, "gi"), new RegExp(`</${tagName}\\s*>`, "gi")],
];

function candidateIn(text: string, keys: readonly string[]) {
  const json = findJsonObjects(text, "loose");
  const candidate = lastCandidate(json, keys);
  if (candidate !== null) return { objects: json, candidate };
  const objects = findJsonObjects(text, "python");
  // Nothing that looks like another object may follow.
  const isSure = objects.length === 1 && text.indexOf("{", objects[0]!.end) < 0;
  return { objects, candidate: isSure ? lastCandidate(objects, keys) : null };
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

/** Whether a text is one object, with or without a code fence. */
const isWhole = (text: string, [object, ...more]: readonly FoundObject[]): boolean =>
  object !== undefined &&
  more.length === 0 &&
  /^\s*(?:```\w*\s*)?$/.test(text.slice(0, object.start)) &&
  /^\s*(?:`{1,3}\s*)?$/.test(text.slice(object.end));

/** A decimal number, alone or of 100. Allows ASCII whitespace, but no no-break space. */
const decimal = String.raw`([+-]?[0-9]+(?:\.[0-9]+)?)(?:[ \t\n\v\f\r]*(?:\/|out of)[ \t\n\v\f\r]*100)?`;
const decimalString = new RegExp(`^[ \\t\\n\\v\\f\\r]*${decimal}[ \\t\\n\\v\\f\\r]*$`);
const labelledNumber = new RegExp(
  `^(?:(?:(?:the|my|final|overall) ){0,3}(?:score|rating|grade)\\s*(?:is|:|=)?\\s*)?${decimal}\\.?$`,
  "i",
);

/** Returns the number of a reply that is only that: `85`, `**85/100**`, `Final score: 85.`, in a code fence or not. */
function onlyNumber(text: string): number | null {
  const bare = text.replaceAll(/```\w*\s|```|\*\*/g, "").trim();
  const match = bare.length > 100 ? null : labelledNumber.exec(bare);
  return match === null ? null : Number(match[1]);
}

function numberOf({ kind, text }: FoundValue): number | null {
  // `Number.parseFloat` ends before `/100`.
  if (kind === "number") return Number.parseFloat(text);
  const match = kind === "string" ? decimalString.exec(text) : null;
  return match === null ? null : Number(match[1]);
}
