import { calculate } from "./arithmetic.ts";
import { comparisons, contains, equals, type Comparison } from "./compare.ts";
import { fail, unsupported } from "./errors.ts";
import { sequenceFilters, attributeGetter, identity } from "./sequence-filters.ts";
import { asInteger, asNumber, parseFloating, parseInteger, toFloat, truncated } from "./numbers.ts";
import { functionOf, type Filters } from "./parameters.ts";
import { repr, str } from "./print.ts";
import { isTrue, iterableOf, iterate, sizeOf } from "./sequences.ts";
import { textFilters } from "./text-filters.ts";
import {
  Callable,
  Dict,
  DictView,
  Float,
  Iteration,
  Undefined,
  isText,
  typeName,
  type Call,
  type Keywords,
  type Value,
} from "./values.ts";

function orDefault(value: Value, replacement: Value = "", isBoolean: Value = false): Value {
  return value instanceof Undefined || (isTrue(isBoolean) && !isTrue(value)) ? replacement : value;
}

function toInteger(value: Value, missing: Value = 0): Value {
  if (!isText(value)) return truncated(value) ?? missing;
  const whole = parseInteger(str(value));
  if (whole !== undefined) return whole;
  const real = parseFloating(str(value));
  return real === undefined || !Number.isFinite(real) ? missing : truncated(new Float(real))!;
}

function toReal(value: Value, missing: Value = new Float(0)): Value {
  if (value instanceof Undefined) return value.fail();
  const real = isText(value) ? parseFloating(str(value)) : asNumber(value);
  return real === undefined ? missing : new Float(toFloat(real));
}

function* mapped(args: readonly Value[], keywords: Keywords): Generator<Value> {
  const [value, name, ...rest] = args;
  if (!isTrue(value!)) return;
  if (name === undefined && keywords.has("attribute")) {
    const unknown = [...keywords.keys()].find((key) => key !== "attribute" && key !== "default");
    if (unknown !== undefined) fail(`Unexpected keyword argument '${unknown}'`);
    const get = attributeGetter(keywords.get("attribute")!, identity, keywords.get("default") ?? null);
    for (const item of iterate(value!)) yield get(item);
    return;
  }
  if (name === undefined) fail("map requires a filter argument");
  for (const item of iterate(value!)) yield named(name, filterOf, "filter")([item, ...rest], keywords);
}

function named(name: Value, lookUp: typeof filterOf, kind: string): Call {
  if (name instanceof Undefined) return name.fail();
  if (!isText(name)) return fail(`No ${kind} named ${repr(name)}.`);
  return lookUp(str(name)) ?? unsupported(`the ${kind} ${str(name)}`);
}

function selecting(isKept: boolean, byAttribute: boolean): Call {
  function* selected(args: readonly Value[], keywords: Keywords): Generator<Value> {
    const [value, ...rest] = args;
    if (!isTrue(value!)) return;
    if (byAttribute && rest.length === 0) fail("Missing parameter for attribute name");
    const get = byAttribute ? attributeGetter(rest.shift()!) : identity;
    const [name, ...testArgs] = rest;
    for (const item of iterate(value!)) {
      const tested = get(item);
      const passes =
        name === undefined ? tested : named(name, testOf, "test")([tested, ...testArgs], keywords);
      if (isTrue(passes) === isKept) yield item;
    }
  }
  return (args, keywords) => new Iteration(selected(args, keywords));
}

const filters: Filters = {
  ...textFilters,
  ...sequenceFilters,
  d: ["value default_value? boolean?", orDefault],
  default: ["value default_value? boolean?", orDefault],
  float: ["value default?", toReal],
  int: ["value default?", toInteger],
  map: (args, keywords) => new Iteration(mapped(args, keywords)),
  reject: selecting(false, false),
  rejectattr: selecting(false, true),
  select: selecting(true, false),
  selectattr: selecting(true, true),
};

const isInteger = (value: Value) => typeof value !== "boolean" && asInteger(value) !== undefined;
const isRest = (rest: number) => (value: Value) => equals(calculate(value, "%", 2), rest);
const isSequence = (value: Value) =>
  sizeOf(value) !== undefined && !(value instanceof DictView || value instanceof Callable);
const isIterable = (value: Value) => iterableOf(value) !== undefined || typeName(value) === "LoopContext";

/** Names of comparisons, besides their operators. */
const names: Readonly<Partial<Record<Comparison, string>>> = {
  "==": "eq equalto",
  "!=": "ne",
  ">": "gt greaterthan",
  ">=": "ge",
  "<": "lt lessthan",
  "<=": "le",
};
const comparing = Object.entries(names).flatMap(([operator, aliases]) =>
  [operator, ...aliases.split(" ")].map(
    (name) => [name, ["a b", comparisons[operator as Comparison]]] as const,
  ),
);

/** The tests. */
const tests: Filters = {
  boolean: ["value", (value: Value) => typeof value === "boolean"],
  defined: ["value", (value: Value) => !(value instanceof Undefined)],
  even: ["value", isRest(0)],
  false: ["value", (value: Value) => value === false],
  float: ["value", (value: Value) => value instanceof Float],
  in: ["value seq", (value: Value, container: Value) => contains(container, value)],
  integer: ["value", isInteger],
  iterable: ["value", isIterable],
  mapping: ["value", (value: Value) => value instanceof Dict],
  none: ["value", (value: Value) => value === null],
  number: ["value", (value: Value) => value instanceof Float || asInteger(value) !== undefined],
  odd: ["value", isRest(1)],
  sequence: ["value", isSequence],
  string: ["value", isText],
  true: ["value", (value: Value) => value === true],
  undefined: ["value", (value: Value) => value instanceof Undefined],
  ...Object.fromEntries(comparing),
};

/** Returns a filter; undefined if there is none of this name. */
export function filterOf(name: string): Call | undefined {
  return functionOf(filters, name);
}

/** Returns a test; undefined if there is none of this name. */
export function testOf(name: string): Call | undefined {
  return functionOf(tests, name);
}
