import { fail, unsupported } from "./errors.ts";
import { globalsOf } from "./globals.ts";
import { parse } from "./parse.ts";
import { Context, Variables } from "./run.ts";
import { isMarkedNumber, withoutMark } from "@periodic-eval/data";
import { integer } from "./numbers.ts";
import { Dict, Float, type Value } from "./values.ts";

export interface Rendering {
  readonly text: string;
  /** Half-open ranges of UTF-16 units inside `{% generation %}`; null if the template has no such tag. */
  readonly generated: readonly (readonly [start: number, end: number])[] | null;
}

export type Template = (variables: Readonly<Record<string, Input>>) => Rendering;

/**
 * Compiles a chat template: jinja2 3.1.6 in the environment of transformers 5.24 (`trim_blocks`, `lstrip_blocks`, `break` and
 * `continue`, `{% generation %}`, its `tojson`, the immutable sandbox). Throws a TemplateError where Python raises, and an
 * UnsupportedError for the parts of jinja2 that are missing here.
 */
export function compileTemplate(source: string, strftimeNow: (format: string) => string): Template {
  const functions = globalsOf(strftimeNow);
  const { run, hasGeneration } = withinStack(() => parse(source));
  return (variables) =>
    withinStack(() => {
      const passed = Object.entries(variables).map(([name, value]) => [name, fromJson(value)] as const);
      const context = new Context();
      const { output } = context;
      run({ context, variables: new Variables(null, [...functions, ...passed]), output });
      return { text: output.text, generated: hasGeneration ? context.generatedIn(output.text) : null };
    });
}

/** Replaces a stack overflow by an error of the template. */
function withinStack<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof RangeError)
      return fail("the template nests too deep, or makes a value that is too long");
    throw error;
  }
}

/** JSON, in which marked strings stand for numbers that JavaScript's numbers are not (`markNumbers`), and bigints. */
export type Input =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly Input[]
  | { readonly [key: string]: Input | undefined };

/**
 * Converts a value to Python's. A number is a float only if it has a fraction. Throws an
 * UnsupportedError for an integer of which JavaScript may have rounded the digits.
 */
export function fromJson(value: Input): Value {
  if (isMarkedNumber(value)) return fromLiteral(withoutMark(value));
  if (typeof value === "bigint") return integer(value);
  if (typeof value === "number") {
    if (Number.isSafeInteger(value)) return value;
    return Number.isInteger(value)
      ? unsupported(`the integer ${value}, whose digits JavaScript may have rounded, instead of a bigint`)
      : new Float(value);
  }
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return (value as readonly Input[]).map((item) => fromJson(item));
  const dict = new Dict();
  for (const [key, item] of Object.entries(value))
    if (item !== undefined) dict.set(withoutMark(key), fromJson(item));
  return dict;
}

const fromLiteral = (literal: string): Value =>
  /[.eE]/.test(literal) ? new Float(Number(literal)) : integer(BigInt(literal));
