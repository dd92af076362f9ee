import type { Json } from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import { objectsIn } from "./json-in-text.ts";
import { flagOf, refuse, short, type VerifierKind } from "./verifier.ts";

interface ToolCall {
  readonly name: string;
  readonly arguments: Json;
}

/**
 * The completion calls the answer's tools with the answer's arguments, and no others. The order of arguments does not
 * count; that of calls does with `ordered`. A call is OpenAI's (`{ function: { name, arguments } }`, alone, in a list or
 * under `tool_calls`, the arguments as text or as an object) or `{ name, arguments }` as chat templates write it
 * (`parameters` is read too), in JSON anywhere in the text. An answer of no calls wants none.
 */
export const toolCallsMatch: VerifierKind = {
  version: "1",
  args: ["ordered"],
  open({ answer, args }) {
    const isOrdered = flagOf(args, "ordered");
    const right = callsOf(answer);
    if (right === null)
      throw refuse(
        "answer",
        answer,
        "tool calls: a list of { name, arguments }, or of OpenAI's { function: { name, arguments } }",
        "Write [] where no tool shall be called.",
      );
    const text = (calls: readonly ToolCall[]) => {
      const texts = calls.map((call) => canonicalJson({ ...call }));
      return (isOrdered ? texts : texts.sort()).join(", ");
    };
    const wanted = text(right);
    return (completion) => {
      const calls = callsIn(completion);
      const said = text(calls);
      return said === wanted ? null : `${short(said || "no call")} is not ${short(wanted || "no call")}`;
    };
  },
};

/** Objects that are no calls are passed over: a model may show its data in JSON too. */
const callsIn = (text: string): readonly ToolCall[] =>
  objectsIn(text).flatMap(({ value }) => callsOf(value) ?? []);

/** Null where the value is no call, nor a list of calls. */
function callsOf(value: Json): readonly ToolCall[] | null {
  if (Array.isArray(value)) {
    const calls = value.map(callsOf);
    return calls.includes(null) ? null : calls.flatMap((some) => some!);
  }
  if (!isObject(value)) return null;
  if (value["tool_calls"] !== undefined) return callsOf(value["tool_calls"]);
  const call = isObject(value["function"]) ? value["function"] : value;
  const { name, arguments: given = call["parameters"] } = call;
  if (typeof name !== "string" || name === "" || given === undefined) return null;
  return [{ name, arguments: argumentsOf(given) }];
}

/** OpenAI gives them as text; one that is no JSON stays a text, and equals no arguments. */
function argumentsOf(given: Json): Json {
  if (typeof given !== "string") return given;
  try {
    return JSON.parse(given) as Json;
  } catch {
    return given;
  }
}

const isObject = (value: Json | undefined): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);
