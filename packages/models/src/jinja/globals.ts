import { fail, TemplateError, unsupported } from "./errors.ts";
import { toIndex } from "./numbers.ts";
import { builtin } from "./parameters.ts";
import { repr, str } from "./print.ts";
import { listOf } from "./sequences.ts";
import { text } from "./string-methods.ts";
import {
  Callable,
  Dict,
  Namespace,
  Range,
  Undefined,
  isText,
  typeName,
  type Keywords,
  type Value,
} from "./values.ts";

const longestRange = 100_000;

function range(args: readonly Value[], keywords: Keywords): Range {
  if (keywords.size > 0) fail("range() takes no keyword arguments");
  if (args.length === 0 || args.length > 3) fail(`range expected 1 to 3 arguments, got ${args.length}`);
  const numbers = args.map(toIndex);
  const [start = 0, stop = 0, step = 1] = numbers.length === 1 ? [0, ...numbers] : numbers;
  if (step === 0) fail("range() arg 3 must not be zero");
  const result = new Range(start, stop, step);
  if (result.length > longestRange)
    fail(`Range too big. The sandbox blocks ranges larger than MAX_RANGE (${longestRange}).`);
  return result;
}

/** Python's `dict(…)`. */
function dict(args: readonly Value[], keywords: Keywords): Dict {
  if (args.length > 1) fail(`dict expected at most 1 argument, got ${args.length}`);
  const [source] = args;
  const entries =
    source === undefined ? [] : source instanceof Dict ? source.entries() : listOf(source).map(pair);
  return new Dict([...entries, ...keywords]);
}

function pair(item: Value): readonly [Value, Value] {
  const [key, value, ...rest] = listOf(item);
  if (key === undefined || value === undefined || rest.length > 0)
    return fail("dictionary update sequence element does not have length 2");
  return [key, value];
}

export function checkNamespaceName(name: Value): void {
  if (isText(name) && str(name).startsWith("_"))
    fail(`Chat templates cannot store underscore-prefixed attributes on a namespace, but got ${repr(name)}.`);
}

function namespace(args: readonly Value[], keywords: Keywords): Namespace {
  const attributes = dict(args, keywords);
  for (const name of attributes.keys()) checkNamespaceName(name);
  return new Namespace(attributes);
}

const notCallable = (type: string) => () => fail(`'${type}' object is not callable`);

/** Calls a value with arguments. */
export function callValue(value: Value, args: readonly Value[], keywords: Keywords): Value {
  if (value instanceof Undefined) return value.fail();
  return value instanceof Callable ? value.call(args, keywords) : notCallable(typeName(value))();
}

/** The functions of jinja2 and transformers, by name. */
export function globalsOf(strftimeNow: (format: string) => string): ReadonlyMap<string, Value> {
  return new Map<string, Value>([
    ["range", new Callable("function", range)],
    ["dict", new Callable("TemplateDict", dict)],
    ["namespace", new Callable("type", namespace)],
    ...["cycler", "joiner", "lipsum"].map(
      (name) => [name, new Callable("function", () => unsupported(`the function ${name}`))] as const,
    ),
    ["raise_exception", builtin("raise_exception", "message", raise)],
    ["strftime_now", builtin("strftime_now", "format", (format: Value) => strftimeNow(text(format)))],
  ]);
}

function raise(message: Value): never {
  throw new TemplateError(str(message));
}
