import { equals } from "./compare.ts";
import { fail } from "./errors.ts";
import { toIndex } from "./numbers.ts";
import type { Methods } from "./parameters.ts";
import { repr } from "./print.ts";
import { bounds } from "./sequences.ts";
import { Dict, DictView, itemsOf, orElse, type Range, type Tuple, type Value } from "./values.ts";
import { spend } from "./work.ts";

type Items = Value[] | Tuple;

const same = (a: Value, b: Value) => a === b || equals(a, b);

const count = (self: Items, value: Value) => itemsOf(self)!.filter((item) => same(item, value)).length;

function index(self: Items, value: Value, start: Value = 0, stop: Value = Number.MAX_SAFE_INTEGER): Value {
  const items = itemsOf(self)!;
  const [first, end] = bounds(toIndex(start), toIndex(stop), 1, items.length);
  for (let i = first; i < end; i++) if (same(items[i]!, value)) return i;
  return fail(`${repr(value)} is not in list`);
}

export const tupleMethods: Methods = {
  count: ["value/", count],
  index: ["value/ start/? stop/?", index],
};

export const listMethods: Methods = {
  ...tupleMethods,
  copy: ["", (self: Value[]) => [...self]],
};

export const dictMethods: Methods = {
  copy: ["", (self: Dict) => new Dict(self.entries())],
  get: [
    "key/ default/?",
    (self: Dict, key: Value, missing: Value = null) => orElse(self.get(key), () => missing),
  ],
  items: ["", (self: Dict) => view("items", self)],
  keys: ["", (self: Dict) => view("keys", self)],
  values: ["", (self: Dict) => view("values", self)],
};

function view(kind: DictView["kind"], dict: Dict): DictView {
  spend(dict.size);
  return new DictView(kind, dict);
}

export const rangeAttributes: Readonly<Record<string, (range: Range) => number>> = {
  start: ({ start }) => start,
  stop: ({ stop }) => stop,
  step: ({ step }) => step,
};
