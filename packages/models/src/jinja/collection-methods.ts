import { equals } from "./compare.ts";
import { fail } from "./errors.ts";
import type { Methods } from "./parameters.ts";
import { repr } from "./print.ts";
import { Dict, DictView, itemsOf, orElse, type Tuple, type Value } from "./values.ts";

type Items = Value[] | Tuple;

const same = (a: Value, b: Value) => a === b || equals(a, b);

const count = (self: Items, value: Value) => itemsOf(self)!.filter((item) => same(item, value)).length;

function index(self: Items, value: Value): Value {
  const at = itemsOf(self)!.findIndex((item) => same(item, value));
  return at < 0 ? fail(`${repr(value)} is not in list`) : at;
}

export const tupleMethods: Methods = {
  count: ["value/", count],
  index: ["value/", index],
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
  items: ["", (self: Dict) => new DictView("items", self)],
  keys: ["", (self: Dict) => new DictView("keys", self)],
  values: ["", (self: Dict) => new DictView("values", self)],
};
