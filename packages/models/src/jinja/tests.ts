import { calculate } from "./arithmetic.ts";
import { comparisons, contains, equals, type Comparison } from "./compare.ts";
import { asInteger } from "./numbers.ts";
import type { Filters } from "./parameters.ts";
import { iterableOf, sizeOf } from "./sequences.ts";
import { Callable, Dict, DictView, Float, Undefined, isText, typeName, type Value } from "./values.ts";

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
const comparing = Object.entries(names).flatMap(([operator, others]) =>
  [operator, ...others.split(" ")].map(
    (name) => [name, ["a b", comparisons[operator as Comparison]]] as const,
  ),
);

/** The tests. */
export const tests: Filters = {
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
