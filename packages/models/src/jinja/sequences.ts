import { fail } from "./errors.ts";
import { asInteger, asNumber } from "./numbers.ts";
import { str } from "./print.ts";
import { characters, lengthOf } from "./text.ts";
import {
  Callable,
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

/** Python's `iter(value)`; throws for values that cannot be iterated. */
export function iterate(value: Value): Iterable<Value> {
  return iterableOf(value) ?? fail(`'${typeName(value)}' object is not iterable`);
}

/** The items of an iterable value; undefined for other values. */
export function iterableOf(value: Value): Iterable<Value> | undefined {
  if (isText(value)) return characters(str(value));
  if (value instanceof Dict) return value.keys();
  if (value instanceof DictView || value instanceof Range || value instanceof Iteration) return value;
  if (value instanceof Undefined) return [];
  return itemsOf(value);
}

/** Python's `list(value)`. */
export function listOf(value: Value): Value[] {
  return [...iterate(value)];
}

/** Python's `reversed(value)`; undefined for values that cannot be reversed. */
export function reversed(value: Value): Value[] | undefined {
  return value instanceof Iteration ? undefined : iterableOf(value) && listOf(value).toReversed();
}

/** Python's `len(value)`; undefined for values without a length. */
export function sizeOf(value: Value): number | undefined {
  if (isText(value)) return lengthOf(str(value));
  if (value instanceof Dict) return value.size;
  if (value instanceof DictView) return value.dict.size;
  if (value instanceof Range) return value.length;
  if (value instanceof Undefined) return 0;
  if (value instanceof Callable && value.type === "LoopContext") return Number(value.attribute("length"));
  return itemsOf(value)?.length;
}

export function len(value: Value): number {
  return sizeOf(value) ?? fail(`object of type '${typeName(value)}' has no len()`);
}

/** Python's `bool(value)`. */
export function isTrue(value: Value): boolean {
  const number = asNumber(value);
  // NaN is true.
  if (number !== undefined) return !(number === 0 || number === 0n);
  return value !== null && (isText(value) ? str(value) !== "" : sizeOf(value) !== 0);
}

type Bound = Value | undefined;

/** Python's `value[start:stop:step]`. */
export function slice(value: Value, start: Bound, stop: Bound, step: Bound): Value {
  if (value instanceof Undefined) return value.fail();
  const [from, to, by] = [start, stop, step].map((bound) => {
    if (bound === undefined || bound === null) return null;
    return Number(
      asInteger(bound) ?? fail("slice indices must be integers or None or have an __index__ method"),
    );
  }) as [number | null, number | null, number | null];
  if (by === 0) fail("slice step cannot be zero");
  const text = isText(value) ? characters(str(value)) : undefined;
  const items = text ?? itemsOf(value) ?? (value instanceof Range ? value : undefined);
  if (items === undefined)
    return fail(
      value instanceof Dict ? "unhashable type: 'slice'" : `'${typeName(value)}' object is not subscriptable`,
    );
  const stride = by ?? 1;
  const length = items.length;
  const [first, end] = bounds(from, to, stride, length);
  if (items instanceof Range) return new Range(items.at(first), items.at(end), items.step * stride);
  const picked: Value[] = [];
  for (let i = first; stride > 0 ? i < end : i > end; i += stride) picked.push(items[i]!);
  if (text !== undefined) return picked.map(str).join("");
  return value instanceof Tuple ? new Tuple(picked) : picked;
}

/** Python's `slice.indices`. */
export function bounds(
  from: number | null,
  to: number | null,
  stride: number,
  length: number,
): readonly [number, number] {
  const low = stride > 0 ? 0 : -1;
  const high = stride > 0 ? length : length - 1;
  const clamp = (bound: number | null, missing: number) => {
    if (bound === null) return missing;
    return Math.min(Math.max(bound < 0 ? bound + length : bound, low), high);
  };
  return [clamp(from, stride > 0 ? low : high), clamp(to, stride > 0 ? high : low)];
}
