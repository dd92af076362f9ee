import { configError, errorMessage, isRecord } from "@periodic-eval/contracts/options";
import type { Json } from "@periodic-eval/core";
import { findJsonObjects, findJsonValues } from "@periodic-eval/core/grading";
import { canonicalJson } from "@periodic-eval/core/random";
import type { ValidateFunction } from "ajv";
import * as z from "zod";
import { flag, short, verifierKind } from "./verifier.ts";

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
export const toolCallsMatch = verifierKind(
  "1",
  {
    answer: z
      .json()
      .refine(
        (answer) => callsOf(answer) !== null,
        "tool calls: an array of { name, arguments }, or of OpenAI's { function: { name, arguments } }",
      )
      .meta({ fix: "Write [] if no tool should be called." }),
    args: { ordered: flag },
  },
  (answer, { ordered }) => {
    const text = (calls: readonly ToolCall[]) => {
      const texts = calls.map((call) => canonicalJson({ ...call }));
      return (ordered ? texts : texts.sort()).join(", ");
    };
    const wanted = text(callsOf(answer)!);
    return (completion) => {
      const said = text(callsIn(completion));
      return said === wanted ? null : `${short(said || "no call")} is not ${short(wanted || "no call")}`;
    };
  },
);

/** Ignores objects that are not calls: a model may also show data as JSON. */
const callsIn = (text: string): readonly ToolCall[] =>
  objectsIn(text).flatMap(({ value }) => callsOf(value) ?? []);

/** Returns the calls in a value; null if it is neither a call nor an array of calls. */
function callsOf(value: Json): readonly ToolCall[] | null {
  if (Array.isArray(value)) {
    const calls = value.map(callsOf);
    return calls.includes(null) ? null : calls.flatMap((some) => some!);
  }
  if (!isRecord(value)) return null;
  if (value["tool_calls"] !== undefined) return callsOf(value["tool_calls"]);
  const call = isRecord(value["function"]) ? value["function"] : value;
  const { name, arguments: args = call["parameters"] } = call;
  if (typeof name !== "string" || name === "" || args === undefined) return null;
  return [{ name, arguments: argumentsOf(args) }];
}

/** Parses OpenAI's arguments, which are a string. A string that is not JSON stays a string, and equals no arguments. */
function argumentsOf(args: Json): Json {
  if (typeof args !== "string") return args;
  try {
    return JSON.parse(args) as Json;
  } catch {
    return args;
  }
}

/**
 * Passes if the completion contains JSON that fits a JSON Schema (draft-07): the task's answer, or the argument `schema` for all
 * tasks.
 */
export const jsonSchema = verifierKind(
  "2",
  { answer: z.json(), args: { schema: z.json().optional() } },
  async (answer, { schema: shared }) => {
    if (answer !== null && shared !== undefined)
      throw configError({
        where: "answer",
        value: answer,
        expected: "no answer together with args.schema",
        fix: "Remove one of the two.",
      });
    const validate = await compiled(shared === undefined ? "answer" : "args.schema", shared ?? answer);
    return (completion) => {
      const read = jsonIn(completion);
      if (read === null) return "no JSON";
      if (validate(read.value)) return null;
      const { instancePath, message = "does not fit" } = validate.errors![0]!;
      return `${instancePath === "" ? "the value" : instancePath} ${message}`;
    };
  },
);

async function compiled(key: string, schema: Json): Promise<ValidateFunction> {
  const wrong = (got: string, fix: string, cause?: unknown) =>
    configError({ where: key, got, expected: "a JSON Schema of draft-07", fix, cause });
  if (!isRecord(schema)) throw wrong(short(schema), "Write { type: … } there.");
  const { Ajv } = await import("ajv");
  try {
    return new Ajv({ strictSchema: true, strictTypes: false, logger: false }).compile(schema);
  } catch (cause) {
    throw wrong(`${short(schema)} (${errorMessage(cause)})`, "Correct the schema.", cause);
  }
}

/** Fenced Markdown blocks with the language JSON or none. */
const fence = /```(?:json|JSON)?[ \t]*\n([^]*?)```/g;

/**
 * Finds the JSON in a text: the whole text, or its last fenced block that is JSON, or the first object or array of objects, or the
 * first array. An array such as "[1]" before an object is taken for a footnote.
 */
export function jsonIn(text: string): { readonly value: Json } | null {
  const fenced = [...text.matchAll(fence)].map((match) => match[1]!).reverse();
  for (const candidate of [text, ...fenced]) {
    const read = parsed(candidate);
    if (read !== null) return read;
  }
  const values = findJsonValues(text).flatMap(({ start, end }) => parsed(text.slice(start, end)) ?? []);
  return (
    values.find(({ value }) => isRecord(value) || (value as readonly Json[]).some(isRecord)) ??
    values[0] ??
    null
  );
}

/** Returns every outermost object in the text, from left to right. */
export const objectsIn = (text: string): readonly { readonly value: Json }[] =>
  findJsonObjects(text).flatMap(({ start, end }) => parsed(text.slice(start, end)) ?? []);

function parsed(text: string): { readonly value: Json } | null {
  try {
    return { value: JSON.parse(text) as Json };
  } catch {
    return null;
  }
}
