import { calculate } from "./arithmetic.ts";
import { isCased } from "./character-types.ts";
import { contains, equals, isOrdered } from "./compare.ts";
import { unsupported } from "./errors.ts";
import { asInteger } from "./numbers.ts";
import type { Filters } from "./parameters.ts";
import { str } from "./print.ts";
import { iterableOf, sizeOf } from "./sequences.ts";
import {
  Callable,
  Dict,
  DictView,
  Float,
  Markup,
  PythonObject,
  Undefined,
  isText,
  typeName,
  type Value,
} from "./values.ts";

const modulo = (value: Value, divisor: Value) => calculate(value, "%", divisor);
const isInteger = (value: Value) => typeof value !== "boolean" && asInteger(value) !== undefined;
const isSequence = (value: Value) =>
  sizeOf(value) !== undefined && !(value instanceof DictView || value instanceof Callable);
const isIterable = (value: Value) => iterableOf(value) !== undefined || typeName(value) === "LoopContext";

function isSame(a: Value, b: Value): boolean {
  const isObject = (value: Value) =>
    value === null || typeof value === "boolean" || Array.isArray(value) || value instanceof PythonObject;
  if (isObject(a) || isObject(b)) {
    if (a !== b && a instanceof Float && b instanceof Float) unsupported("the identity of numbers");
    return a === b;
  }
  if (typeof a !== typeof b || a !== b) return false;
  return typeof a === "number" && a >= -5 && a <= 256
    ? true
    : unsupported("the identity of numbers or strings");
}

const equal = ["a b", equals] as const;
const notEqual = ["a b", (a: Value, b: Value) => !equals(a, b)] as const;
const greater = ["a b", (a: Value, b: Value) => isOrdered(a, "gt", b)] as const;
const greaterOrEqual = ["a b", (a: Value, b: Value) => isOrdered(a, "gteq", b)] as const;
const less = ["a b", (a: Value, b: Value) => isOrdered(a, "lt", b)] as const;
const lessOrEqual = ["a b", (a: Value, b: Value) => isOrdered(a, "lteq", b)] as const;

/** The tests, except `filter`. */
export const tests: Filters = {
  boolean: ["value", (value: Value) => typeof value === "boolean"],
  callable: [
    "obj/",
    (value: Value) => value instanceof Undefined || (value instanceof Callable && value.type !== "Cycler"),
  ],
  defined: ["value", (value: Value) => !(value instanceof Undefined)],
  divisibleby: ["value num", (value: Value, divisor: Value) => equals(modulo(value, divisor), 0)],
  escaped: ["value", (value: Value) => value instanceof Markup],
  even: ["value", (value: Value) => equals(modulo(value, 2), 0)],
  false: ["value", (value: Value) => value === false],
  float: ["value", (value: Value) => value instanceof Float],
  in: ["value seq", (value: Value, container: Value) => contains(container, value)],
  integer: ["value", isInteger],
  iterable: ["value", isIterable],
  lower: ["value", (value: Value) => isCased(str(value), "lower")],
  mapping: ["value", (value: Value) => value instanceof Dict],
  none: ["value", (value: Value) => value === null],
  number: ["value", (value: Value) => value instanceof Float || asInteger(value) !== undefined],
  odd: ["value", (value: Value) => equals(modulo(value, 2), 1)],
  sameas: ["value other", isSame],
  sequence: ["value", isSequence],
  string: ["value", isText],
  test: [
    "value",
    (value: Value) => isText(value) && (str(value) === "filter" || Object.hasOwn(tests, str(value))),
  ],
  true: ["value", (value: Value) => value === true],
  undefined: ["value", (value: Value) => value instanceof Undefined],
  upper: ["value", (value: Value) => isCased(str(value), "upper")],
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
