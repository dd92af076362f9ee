import { fail, TemplateError, unsupported } from "./errors.ts";
import { toIndex } from "./numbers.ts";
import { builtin } from "./parameters.ts";
import { repr, str } from "./print.ts";
import { iterate, listOf } from "./sequences.ts";
import { text } from "./string-methods.ts";
import {
  Callable,
  Dict,
  Namespace,
  Range,
  Tuple,
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

function cycler(items: readonly Value[], keywords: Keywords): Callable {
  if (keywords.size > 0 || items.length === 0) fail("at least one item has to be provided");
  let position = 0;
  const next = () => {
    const item = items[position]!;
    position = (position + 1) % items.length;
    return item;
  };
  const reset = () => {
    position = 0;
    return null;
  };
  const attributes: Readonly<Record<string, () => Value>> = {
    next: () => builtin("next", "", next),
    reset: () => builtin("reset", "", reset),
    current: () => items[position]!,
    pos: () => position,
    items: () => new Tuple(items),
  };
  return new Callable("Cycler", notCallable("Cycler"), (name) => attributes[name]?.());
}

const notCallable = (type: string) => () => fail(`'${type}' object is not callable`);

function joiner(separator: Value = ", "): Callable {
  let isUsed = false;
  const call = () => {
    const shown = isUsed ? separator : "";
    isUsed = true;
    return shown;
  };
  return new Callable("Joiner", builtin("joiner", "", call).call, (name) =>
    name === "sep" ? separator : name === "used" ? isUsed : undefined,
  );
}

function fromKeys(keys: Value, value: Value = null): Dict {
  return new Dict([...iterate(keys)].map((key) => [key, value] as const));
}

/** Calls a value with arguments. */
export function callValue(value: Value, args: readonly Value[], keywords: Keywords): Value {
  if (value instanceof Undefined) return value.fail();
  return value instanceof Callable ? value.call(args, keywords) : notCallable(typeName(value))();
}

/** The functions of jinja2 and transformers, by name. */
export function globalsOf(strftimeNow: (format: string) => string): ReadonlyMap<string, Value> {
  return new Map<string, Value>([
    ["range", new Callable("function", range)],
    [
      "dict",
      new Callable("TemplateDict", dict, (name) =>
        name === "fromkeys" ? builtin("fromkeys", "iterable/ value/?", fromKeys) : undefined,
      ),
    ],
    ["namespace", new Callable("type", namespace)],
    ["cycler", new Callable("type", cycler)],
    ["joiner", builtin("joiner", "sep?", joiner)],
    ["lipsum", new Callable("function", () => unsupported("the function lipsum"))],
    ["raise_exception", builtin("raise_exception", "message", raise)],
    ["strftime_now", builtin("strftime_now", "format", (format: Value) => strftimeNow(text(format)))],
  ]);
}

function raise(message: Value): never {
  throw new TemplateError(str(message));
}
