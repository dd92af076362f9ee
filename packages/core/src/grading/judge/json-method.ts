import type { EvaluableModel, ModelWith } from "@periodic-eval/contracts";
import { opensThinking, modelMarkup, stripThinking, type ThinkingMarkup } from "../../model/thinking.ts";
import { findJsonObjects, type FoundObject, type FoundValue } from "./json-objects.ts";
import { completionOf, greedy, judgeChat, type JudgeMethod } from "./judge-method.ts";
import { judgePromptNames } from "./prompts.ts";

/** One prompt per answer; the reply is one JSON object with all scores. */
export function jsonMethod(
  model: EvaluableModel & ModelWith<"generate">,
  scores: readonly string[],
  maxReplyTokens: number,
): JudgeMethod {
  const sampling = { ...greedy, maxNewTokens: maxReplyTokens };
  return {
    prompts: judgePromptNames("json", scores),
    maxOutputTokens: maxReplyTokens,
    sampling: { temperature: greedy.temperature, max_new_tokens: maxReplyTokens },
    async verdict([prompt], call) {
      const { text: raw, finish, model: servedModel } = await completionOf(model, prompt!, sampling, call);
      const named = servedModel === undefined ? {} : { model: servedModel };
      const [rendered] = (await model.tokenizer?.render([judgeChat(prompt!)])) ?? [];
      const isOpened = opensThinking(rendered?.text ?? null);
      const parsed = parseJudgeReply(raw, scores, { finish, isOpened });
      if ("scores" in parsed) return { status: "graded", scores: parsed.scores, raw, ...named };
      return { status: parsed.unparseable === "cut" ? "cut" : "unparsed", raw, ...named };
    },
  };
}

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
 * are invalid: an earlier object is never a fallback, nor is one that is followed or surrounded by an object with these keys in
 * another notation. If an object lacks a key, the objects inside it are searched. Without such an object, one in Python's notation
 * counts, and for a single score a reply that is only its number (`Score: 85/100`).
 *
 * A score is a number, or a string with a plain decimal number, from 0 to 100; it is neither rounded nor clamped, and `/100` may
 * follow it, but no other scale. A reply that was cut off has scores only if it is one complete object and nothing else: the
 * missing part could have been another grade.
 *
 * Takes time linear in the reply. Throws a RangeError for a string with millions of escapes, which exceeds the stack.
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

/**
 * Tags that prompts ask for, such as `<thinking>`, `<reasoning>`, `<scratchpad>` and `<cot>`, also as `<|thinking|>`,
 * `<|begin_thinking|>` … `<|end_thinking|>`, and with escaped angle brackets.
 */
const tagName = String.raw`([\w:-]{0,20}(?:think|thought|reason|rational|reflect|analy[sz]|deliberat|ponder|scratch|monolog)[\w:-]{0,20}|cot)`;
const left = String.raw`(?:<|&lt;|&#60;|&#x3c;|\\u003c)\|?`;
const right = String.raw`\|?(?:>|&gt;|&#62;|&#x3e;|\\u003e)`;
const beginning = String.raw`(?!end[_-])(?:(?:begin|start)[_-](?:of[_-])?)?`;
const ending = String.raw`(?:\/|end[_-](?:of[_-])?)`;
const markup: readonly ThinkingMarkup[] = [
  ...modelMarkup,
  [
    new RegExp(`${left}${beginning}${tagName}(?:\\s[^<>]{0,200}?)?${right}`, "gi"),
    new RegExp(`${left}${ending}${tagName}\\s*${right}`, "gi"),
  ],
];

function candidateIn(text: string, keys: readonly string[]) {
  const json = findJsonObjects(text, "loose");
  const candidate = lastCandidate(json, keys);
  const objects = findJsonObjects(text, "python");
  if (candidate !== null && (isSure(text, json, candidate, keys) || isPair(text, objects)))
    return { objects: json, candidate };
  // Nothing that looks like another object may follow.
  const [only] = objects;
  const inPython =
    objects.length === 1 && !text.includes("{", only!.end) ? lastCandidate(objects, keys) : null;
  return { objects, candidate: inPython && isSure(text, objects, inPython, keys) ? inPython : null };
}

/** Braces around words or numbers, such as `{rubric}`, `{1, 2}` and LaTeX's. */
const braces = /\{[^{}:="']*\}/g;

/**
 * Whether no object in another notation (`{aligned: 85%, …`) competes with a candidate: behind it, or around it, no key follows an
 * opened brace. The last or the outermost object would be the judge's grade.
 */
function isSure(
  text: string,
  objects: readonly FoundObject[],
  candidate: FoundObject,
  keys: readonly string[],
): boolean {
  const at = objects.findIndex(({ start, end }) => start <= candidate.start && candidate.end <= end);
  const before = objects
    .slice(0, at + 1)
    .map(({ start }, index) => text.slice(objects[index - 1]?.end ?? 0, start));
  const around = fromOpenBrace(before.join(" "));
  const behind = text.slice(objects[at]!.end).replaceAll(braces, "");
  const rival =
    around === "" ? behind.slice(behind.includes("{") ? behind.indexOf("{") : Infinity) : around + behind;
  const names = keys.map((key) => key.replaceAll(/[^\p{L}\p{N}_\s]/gu, String.raw`\$&`)).join("|");
  return !new RegExp(String.raw`(?:${names})(?:_\w{1,20})?(?:&quot;|[^\w:={}]){0,4}[:=：\d]`, "i").test(
    rival,
  );
}

/** Returns a text from its first brace that is not closed; empty if all are. */
function fromOpenBrace(text: string): string {
  const open: number[] = [];
  for (const { 0: brace, index } of text.matchAll(/[{}]/g)) {
    if (brace === "{") open.push(index);
    else open.pop();
  }
  return open.length === 0 ? "" : text.slice(open[0]);
}

/** Whether a reply is two objects and nothing else. If one is not JSON, the other one counts: nothing says that it is a draft. */
const isPair = (text: string, [first, second, ...more]: readonly FoundObject[]): boolean =>
  first !== undefined &&
  second !== undefined &&
  more.length === 0 &&
  (text.slice(0, first.start) + text.slice(first.end, second.start) + text.slice(second.end)).trim() === "";

/** Searches from the end: the first object found with all keys, outside of any other such object, is the last one. */
function lastCandidate(objects: readonly FoundObject[], keys: readonly string[]): FoundObject | null {
  const waiting = [...objects];
  for (let object = waiting.pop(); object !== undefined; object = waiting.pop()) {
    const { members } = object;
    if (keys.every((key) => members.has(key))) return object;
    for (const { objects: inside } of members.values()) {
      for (const nested of inside) waiting.push(nested);
    }
  }
  return null;
}

/** Whether a reply is one object, with or without a code fence. */
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
