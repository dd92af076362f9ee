import { calculate } from "./arithmetic.ts";
import { comparisons, sorted } from "./compare.ts";
import { fail } from "./errors.ts";
import type { Filters } from "./parameters.ts";
import { str } from "./print.ts";
import { isTrue, iterate, len, listOf, reversed } from "./sequences.ts";
import { characters } from "./text.ts";
import {
  Dict,
  Iteration,
  Tuple,
  Undefined,
  hashKey,
  isText,
  orElse,
  typeName,
  type Value,
} from "./values.ts";
import { getItem } from "./attributes.ts";

type Getter = (item: Value) => Value;

/** Returns the key by which filters sort and compare: text in lowercase, other values unchanged. */
export const ignoreCase: Getter = (value) => (isText(value) ? str(value).toLowerCase() : value);
export const identity: Getter = (value) => value;

/** Returns a function that looks up an attribute such as `function.name` or `0.name`; null is the item itself. */
export function attributeGetter(attribute: Value, after: Getter = identity, missing: Value = null): Getter {
  const parts = partsOf(attribute);
  return (item) => {
    let value = item;
    for (const part of parts) {
      value = getItem(value, part);
      if (missing !== null && value instanceof Undefined) value = missing;
    }
    return after(value);
  };
}

/** As `attributeGetter`, for several attributes that are separated by commas; returns a list. */
export function attributesGetter(attribute: Value, after: Getter): Getter {
  const attributes = isText(attribute) ? str(attribute).split(",") : [attribute];
  const getters = attributes.map((each) => attributeGetter(each, after));
  return (item) => getters.map((get) => get(item));
}

function partsOf(attribute: Value): readonly Value[] {
  if (attribute === null) return [];
  if (!isText(attribute)) return [attribute];
  return str(attribute)
    .split(".")
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

const caseOf = (isSensitive: Value) => (isTrue(isSensitive) ? identity : ignoreCase);

function dictSort(
  value: Value,
  isSensitive: Value = false,
  by: Value = "key",
  isReversed: Value = false,
): Value {
  if (by !== "key" && by !== "value") return fail('You can only sort by either "key" or "value"');
  if (value instanceof Undefined) return value.fail();
  if (!(value instanceof Dict)) return fail(`'${typeName(value)}' object has no attribute 'items'`);
  const keyOf = caseOf(isSensitive);
  const entries = sorted(
    [...value.entries()],
    (entry) => keyOf(entry[by === "key" ? 0 : 1]),
    isTrue(isReversed),
  );
  return entries.map((entry) => new Tuple(entry));
}

function extreme(isBetter: (a: Value, b: Value) => boolean) {
  return (value: Value, isSensitive: Value = false, attribute: Value = null): Value => {
    const keyOf = attributeGetter(attribute, caseOf(isSensitive));
    let best: { item: Value; key: Value } | undefined;
    for (const item of iterate(value)) {
      const key = keyOf(item);
      if (best === undefined || isBetter(key, best.key)) best = { item, key };
    }
    return orElse(best?.item, () => new Undefined("No aggregated item, sequence was empty."));
  };
}

function* items(value: Value): Generator<Value> {
  if (value instanceof Undefined) return;
  if (!(value instanceof Dict)) return fail("Can only get item pairs from a mapping.");
  for (const entry of value.entries()) yield new Tuple(entry);
}

function join(value: Value, separator: Value = "", attribute: Value = null): string {
  const get = attribute === null ? identity : attributeGetter(attribute);
  return listOf(value)
    .map((item) => str(get(item)))
    .join(str(separator));
}

function first(value: Value): Value {
  for (const item of iterate(value)) return item;
  return new Undefined("No first item, sequence was empty.");
}

function last(value: Value): Value {
  const all = reversed(value) ?? fail(`'${typeName(value)}' object is not reversible`);
  return orElse(all[0], () => new Undefined("No last item, sequence was empty."));
}

function reverse(value: Value): Value {
  if (isText(value)) return characters(str(value)).toReversed().join("");
  const all = reversed(value);
  return all === undefined ? listOf(value).toReversed() : new Iteration(all);
}

function* unique(value: Value, isSensitive: Value, attribute: Value): Generator<Value> {
  const keyOf = attributeGetter(attribute, caseOf(isSensitive));
  const seen = new Set<unknown>();
  for (const item of iterate(value)) {
    const key = hashKey(keyOf(item));
    if (seen.has(key)) continue;
    seen.add(key);
    yield item;
  }
}

function sum(value: Value, attribute: Value = null, start: Value = 0): Value {
  if (isText(start)) fail("sum() can't sum strings [use ''.join(seq) instead]");
  const get = attribute === null ? identity : attributeGetter(attribute);
  let total: Value = start;
  for (const item of iterate(value)) total = calculate(total, "+", get(item));
  return total;
}

function sort(
  value: Value,
  isReversed: Value = false,
  isSensitive: Value = false,
  attribute: Value = null,
): Value {
  return sorted(listOf(value), attributesGetter(attribute, caseOf(isSensitive)), isTrue(isReversed));
}

export const sequenceFilters: Filters = {
  count: ["obj/", len],
  dictsort: ["value case_sensitive? by? reverse?", dictSort],
  first: ["seq", first],
  items: ["value", (value: Value) => new Iteration(items(value))],
  join: ["value d? attribute?", join],
  last: ["seq", last],
  length: ["obj/", len],
  list: ["value", listOf],
  max: ["value case_sensitive? attribute?", extreme(comparisons[">"])],
  min: ["value case_sensitive? attribute?", extreme(comparisons["<"])],
  reverse: ["value", reverse],
  sort: ["value reverse? case_sensitive? attribute?", sort],
  sum: ["iterable attribute? start?", sum],
  unique: [
    "value case_sensitive? attribute?",
    (value: Value, isSensitive: Value = false, attribute: Value = null) =>
      new Iteration(unique(value, isSensitive, attribute)),
  ],
};
