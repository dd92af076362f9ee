import { fail, unsupported } from "./errors.ts";
import { Callable, type Call, type Keywords, type Value } from "./values.ts";

/** The parameters of a function: names that are separated by spaces; optional ones end in `?`, positional-only ones in `/`. */
export type Parameters = string;

const parse = (parameters: Parameters) =>
  (parameters.match(/[^ ]+/g) ?? []).map((word) => ({
    name: word.replace(/[?/]+$/, ""),
    isOptional: word.includes("?"),
    isPositional: word.includes("/"),
  }));

/** Assigns arguments to parameters as Python does; the value of an optional parameter without an argument is undefined. */
export function bind(
  name: string,
  parameters: Parameters,
  args: readonly Value[],
  keywords: Keywords,
): readonly (Value | undefined)[] {
  const list = parse(parameters);
  if (args.length > list.length) unsupported(`${name}() with ${args.length} arguments`);
  const bound: (Value | undefined)[] = list.map((_, i) => args[i]);
  for (const [keyword, value] of keywords) {
    const at = list.findIndex((parameter) => parameter.name === keyword && !parameter.isPositional);
    if (at < 0) unsupported(`${name}() with the argument ${keyword}`);
    if (at < args.length) fail(`${name}() got multiple values for argument '${keyword}'`);
    bound[at] = value;
  }
  const missing = list.find(({ isOptional }, i) => !isOptional && bound[i] === undefined);
  if (missing !== undefined) fail(`${name}() missing a required argument: '${missing.name}'`);
  return bound;
}

export type Implementation = (...args: never[]) => Value;

/** Methods of a type by name: the parameters after `self`, and the function. */
export type Methods = Readonly<Record<string, readonly [Parameters, Implementation]>>;

/** Filters or tests by name: parameters and function, or a function of all arguments. The value is the first argument. */
export type Filters = Readonly<Record<string, readonly [Parameters, Implementation] | Call>>;

/** Returns a filter or test of a table; undefined if there is none of this name. */
export function functionOf(table: Filters, name: string): Call | undefined {
  if (!Object.hasOwn(table, name)) return undefined;
  const entry = table[name]!;
  if (typeof entry === "function") return entry;
  const [parameters, run] = entry;
  return (args, keywords) => run(...(bind(name, parameters, args, keywords) as never[]));
}

/** Returns a function value whose arguments are bound to `parameters`. */
export function builtin(name: string, parameters: Parameters, run: Implementation): Callable {
  const call: Call = (args, keywords) => run(...(bind(name, parameters, args, keywords) as never[]));
  return new Callable("builtin_function_or_method", call);
}
