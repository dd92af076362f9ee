import { fail, unsupported } from "./errors.ts";
import { asNumber, type Integer } from "./numbers.ts";
import { str } from "./print.ts";
import { iterate } from "./sequences.ts";
import { compareText } from "./text.ts";
import {
  Dict,
  DictView,
  Iteration,
  Range,
  Tuple,
  Undefined,
  isText,
  itemsOf,
  typeName,
  type Value,
} from "./values.ts";

/** Python's `a == b`. */
export function equals(a: Value, b: Value): boolean {
  const x = asNumber(a);
  const y = asNumber(b);
  // JavaScript compares numbers and bigints exactly.
  // eslint-disable-next-line eqeqeq
  if (x !== undefined || y !== undefined) return x !== undefined && y !== undefined && x == y;
  if (isText(a) && isText(b)) return str(a) === str(b);
  if (Array.isArray(a) && Array.isArray(b)) return sameItems(a, b);
  if (a instanceof Tuple && b instanceof Tuple) return sameItems(a.items, b.items);
  if (a instanceof Dict && b instanceof Dict) return a === b || sameDicts(a, b);
  if (a instanceof Range && b instanceof Range) return sameItems([...a], [...b]);
  if (a instanceof Undefined) return b instanceof Undefined;
  if (a instanceof DictView && b instanceof DictView && a.kind !== "values" && b.kind !== "values")
    return a.dict.size === b.dict.size && [...a].every((item) => contains(b, item));
  return a === b;
}

function sameItems(a: readonly Value[], b: readonly Value[]): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i] || equals(item, b[i]!));
}

function sameDicts(a: Dict, b: Dict): boolean {
  if (a.size !== b.size) return false;
  for (const [key, item] of a.entries()) {
    const match = b.get(key);
    if (match === undefined || !(match === item || equals(item, match))) return false;
  }
  return true;
}

const orders = {
  "<": (a: Integer, b: Integer) => a < b,
  "<=": (a: Integer, b: Integer) => a <= b,
  ">": (a: Integer, b: Integer) => a > b,
  ">=": (a: Integer, b: Integer) => a >= b,
};
type Order = keyof typeof orders;

/** Python's `a < b`, `a <= b`, `a > b` or `a >= b`. */
export function isOrdered(a: Value, order: Order, b: Value): boolean {
  const x = asNumber(a);
  const y = asNumber(b);
  if (x !== undefined && y !== undefined) return orders[order](x, y);
  if (isText(a) && isText(b)) return orders[order](compareText(str(a), str(b)), 0);
  if (a instanceof Undefined) return a.fail();
  if (b instanceof Undefined) return b.fail();
  const left = itemsOf(a);
  const right = itemsOf(b);
  if (left !== undefined && right !== undefined && Array.isArray(a) === Array.isArray(b)) {
    const at = left.findIndex(
      (item, i) => i >= right.length || !(item === right[i] || equals(item, right[i]!)),
    );
    if (at >= 0 && at < right.length) return isOrdered(left[at]!, order, right[at]!);
    return orders[order](left.length, right.length);
  }
  if (a instanceof DictView && b instanceof DictView) unsupported("an order of dict views");
  return fail(`'${order}' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`);
}

/** Python's `sorted`, which only uses `<`. */
export function sorted<T>(items: readonly T[], keyOf: (item: T) => Value, isReversed: boolean): T[] {
  const keyed = items.map((item) => ({ item, key: keyOf(item) }));
  const compare = (a: Value, b: Value) => (isOrdered(a, "<", b) ? -1 : isOrdered(b, "<", a) ? 1 : 0);
  return keyed
    .toSorted((a, b) => (isReversed ? compare(b.key, a.key) : compare(a.key, b.key)))
    .map(({ item }) => item);
}

/** Python's `item in container`. */
export function contains(container: Value, item: Value): boolean {
  if (isText(container)) {
    if (!isText(item)) fail(`'in <string>' requires string as left operand, not ${typeName(item)}`);
    return str(container).includes(str(item));
  }
  if (container instanceof Dict) return container.has(item);
  if (container instanceof DictView && container.kind === "keys") return container.dict.has(item);
  if (container instanceof Range) {
    const number = asNumber(item);
    if (number === undefined) return false;
    return [...container].some((member) => equals(member, item));
  }
  const items = itemsOf(container) ?? (container instanceof Iteration ? container : iterate(container));
  for (const member of items) if (member === item || equals(member, item)) return true;
  return false;
}

/** The operators of comparisons. */
export const comparisons = {
  "==": equals,
  "!=": (a: Value, b: Value): boolean => !equals(a, b),
  "<": (a: Value, b: Value): boolean => isOrdered(a, "<", b),
  "<=": (a: Value, b: Value): boolean => isOrdered(a, "<=", b),
  ">": (a: Value, b: Value): boolean => isOrdered(a, ">", b),
  ">=": (a: Value, b: Value): boolean => isOrdered(a, ">=", b),
  in: (a: Value, b: Value): boolean => contains(b, a),
  "not in": (a: Value, b: Value): boolean => !contains(b, a),
};
export type Comparison = keyof typeof comparisons;
