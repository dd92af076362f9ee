import type { Json } from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import { isRecord } from "@periodic-eval/contracts/options";
import { objectsIn } from "./json-in-text.ts";
import { flagOf, verifierError, short, type VerifierKind } from "./verifier.ts";

interface ToolCall {
  readonly name: string;
  readonly arguments: Json;
}

/**
 * Passes if the completion makes exactly the answer's calls, with the same arguments. The order of arguments does not count; the
 * order of calls counts with `ordered`. A call is JSON anywhere in the text: OpenAI's `{ function: { name, arguments } }` (alone,
 * in an array or under `tool_calls`; the arguments as a string or an object), or `{ name, arguments }` as chat templates write it
 * (also with `parameters`). An answer without calls requires none.
 */
export const toolCallsMatch: VerifierKind = {
  version: "1",
  args: ["ordered"],
  open({ answer, args }) {
    const isOrdered = flagOf(args, "ordered");
    const right = callsOf(answer);
    if (right === null)
      throw verifierError(
        "answer",
        answer,
        "tool calls: an array of { name, arguments }, or of OpenAI's { function: { name, arguments } }",
        "Write [] if no tool should be called.",
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

/** Ignores objects that are not calls: a model may also show data as JSON. */
const callsIn = (text: string): readonly ToolCall[] =>
  objectsIn(text).flatMap(({ value }) => callsOf(value) ?? []);

/** Returns the calls in a value; null if it is neither a call nor an array of calls. */
function callsOf(value: Json): readonly ToolCall[] | null {
  if (Array.isArray(value)) {
    const calls = value.map(callsOf);
    return calls.includes(null) ? null : calls.flatMap((some) => some!);
  }
  if (!isMap(value)) return null;
  if (value["tool_calls"] !== undefined) return callsOf(value["tool_calls"]);
  const call = isMap(value["function"]) ? value["function"] : value;
  const { name, arguments: given = call["parameters"] } = call;
  if (typeof name !== "string" || name === "" || given === undefined) return null;
  return [{ name, arguments: argumentsOf(given) }];
}

/** Parses OpenAI's arguments, which are a string. A string that is not JSON stays a string, and equals no arguments. */
function argumentsOf(given: Json): Json {
  if (typeof given !== "string") return given;
  try {
    return JSON.parse(given) as Json;
  } catch {
    return given;
  }
}

const isMap = (value: Json | undefined): value is { readonly [key: string]: Json } => isRecord(value);
