import { calculate } from "./arithmetic.ts";
import { contains, equals, isOrdered } from "./compare.ts";
import { asInteger } from "./numbers.ts";
import type { Filters } from "./parameters.ts";
import { iterableOf, sizeOf } from "./sequences.ts";
import { Callable, Dict, DictView, Float, Undefined, isText, typeName, type Value } from "./values.ts";

const isInteger = (value: Value) => typeof value !== "boolean" && asInteger(value) !== undefined;
const isRest = (rest: number) => (value: Value) => equals(calculate(value, "%", 2), rest);
const isSequence = (value: Value) =>
  sizeOf(value) !== undefined && !(value instanceof DictView || value instanceof Callable);
const isIterable = (value: Value) => iterableOf(value) !== undefined || typeName(value) === "LoopContext";

const equal = ["a b", equals] as const;
const notEqual = ["a b", (a: Value, b: Value) => !equals(a, b)] as const;
const greater = ["a b", (a: Value, b: Value) => isOrdered(a, "gt", b)] as const;
const greaterOrEqual = ["a b", (a: Value, b: Value) => isOrdered(a, "gteq", b)] as const;
const less = ["a b", (a: Value, b: Value) => isOrdered(a, "lt", b)] as const;
const lessOrEqual = ["a b", (a: Value, b: Value) => isOrdered(a, "lteq", b)] as const;

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
  "==": equal,
  eq: equal,
  equalto: equal,
  "!=": notEqual,
  ne: notEqual,
  ">": greater,
  gt: greater,
  greaterthan: greater,
  ">=": greaterOrEqual,
  ge: greaterOrEqual,
  "<": less,
  lt: less,
  lessthan: less,
  "<=": lessOrEqual,
  le: lessOrEqual,
};
