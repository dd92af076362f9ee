import { equals } from "./compare.ts";
import { unsupported, fail } from "./errors.ts";
import { asInteger } from "./numbers.ts";
import { bind, type Methods } from "./parameters.ts";
import { repr, str, formatString } from "./print.ts";
import { stringMethods } from "./string-methods.ts";
import { characters } from "./text.ts";
import {
  Callable,
  Dict,
  Markup,
  Namespace,
  Range,
  Tuple,
  Undefined,
  isText,
  itemsOf,
  orElse,
  typeName,
  type Value,
  DictView,
} from "./values.ts";

/** Attributes that Python's types have, by type, and that are not supported. */
const unsupportedAttributes: Readonly<Record<string, readonly string[]>> = {
  str: [
    ..."casefold center encode expandtabs format_map isalnum isalpha isascii isdecimal isdigit".split(" "),
    ..."isidentifier islower isnumeric isprintable isspace istitle isupper ljust maketrans".split(" "),
    ..."partition rindex rjust rpartition swapcase translate zfill".split(" "),
  ],
  dict: ["fromkeys"],
  int: ["as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator", "from_bytes", "imag"],
  float: ["as_integer_ratio", "conjugate", "fromhex", "hex", "imag", "is_integer", "real"],
  range: ["count", "index", "start", "step", "stop"],
  dict_keys: ["isdisjoint", "mapping"],
  dict_items: ["isdisjoint", "mapping"],
  dict_values: ["mapping"],
  generator: ["close", "send", "throw"],
};
const moreOfIntegers = ["numerator", "real", "to_bytes"];

/** Methods that would change a value; jinja2's sandbox makes them undefined. */
const mutating: Readonly<Record<string, readonly string[]>> = {
  list: ["append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"],
  dict: ["clear", "pop", "popitem", "setdefault", "update"],
};

/** jinja2's `value.name`: the attribute of the value in Python, else its item. */
export function getAttribute(value: Value, name: string): Value {
  if (value instanceof Undefined) return value.fail();
  return orElse(attributeOf(value, name), () => orElse(itemOf(value, name), () => missing(value, name)));
}

/** jinja2's `value[key]`: the item of the value, else its attribute. */
export function getItem(value: Value, key: Value): Value {
  if (value instanceof Undefined) return value.fail();
  const item = itemOf(value, key);
  if (item !== undefined) return item;
  return orElse(isText(key) ? attributeOf(value, str(key)) : undefined, () => missing(value, key));
}

function missing(value: Value, key: Value): Undefined {
  const what = isText(key) ? `attribute ${repr(str(key))}` : `element ${repr(key)}`;
  return new Undefined(`'${typeName(value)} object' has no ${what}`);
}

/** Python's `value[key]` without slices; undefined for a TypeError or LookupError. */
function itemOf(value: Value, key: Value): Value | undefined {
  if (value instanceof Dict) {
    const isHashable = !(Array.isArray(key) || key instanceof Dict);
    return isHashable ? value.get(key) : undefined;
  }
  const index = asInteger(key);
  if (index === undefined) return undefined;
  if (value instanceof Markup) unsupported("characters of text marked as safe");
  const items = typeof value === "string" ? characters(value) : itemsOf(value);
  const length = items?.length ?? (value instanceof Range ? value.length : 0);
  const at = Number(index) < 0 ? Number(index) + length : Number(index);
  if (at < 0 || at >= length) return undefined;
  return value instanceof Range ? value.at(at) : items?.[at];
}

/** The attribute of a value in Python; undefined if it has none of this name. */
export function attributeOf(value: Value, name: string): Value | undefined {
  if (value instanceof Namespace) return value.attributes.get(name);
  const type = typeName(value);
  if (/^__\w+__$/.test(name) || mutating[type]?.includes(name) === true)
    return new Undefined(`access to attribute ${repr(name)} of '${type}' object is unsafe.`);
  if (value instanceof Callable) return value.attribute(name);
  if (value instanceof Markup) return unsupported(`the attribute ${name} of text marked as safe`);
  if (typeof value === "string") {
    if (name === "format")
      return new Callable("function", (args, keywords) => formatString(value, args, keywords));
    if (Object.hasOwn(stringMethods, name)) return method(value, name, stringMethods);
  }
  if (Array.isArray(value) && Object.hasOwn(listMethods, name)) return method(value, name, listMethods);
  if (value instanceof Tuple && Object.hasOwn(tupleMethods, name)) return method(value, name, tupleMethods);
  if (value instanceof Dict && Object.hasOwn(dictMethods, name)) return method(value, name, dictMethods);
  const isInteger = asInteger(value) !== undefined;
  const unknown = unsupportedAttributes[isInteger ? "int" : type]?.includes(name) === true;
  if (unknown || (isInteger && moreOfIntegers.includes(name)))
    unsupported(`the attribute ${name} of a ${type}`);
  return undefined;
}

function method(value: Value, name: string, methods: Methods): Callable {
  const [parameters, run] = methods[name]!;
  return new Callable("builtin_function_or_method", (args, keywords) =>
    run(...([value, ...bind(name, parameters, args, keywords)] as never[])),
  );
}

type Items = Value[] | Tuple;

const same = (a: Value, b: Value) => a === b || equals(a, b);

const count = (self: Items, value: Value) => itemsOf(self)!.filter((item) => same(item, value)).length;

function index(self: Items, value: Value): Value {
  const at = itemsOf(self)!.findIndex((item) => same(item, value));
  return at < 0 ? fail(`${repr(value)} is not in list`) : at;
}

const tupleMethods: Methods = {
  count: ["value/", count],
  index: ["value/", index],
};

const listMethods: Methods = {
  ...tupleMethods,
  copy: ["", (self: Value[]) => [...self]],
};

const dictMethods: Methods = {
  copy: ["", (self: Dict) => new Dict(self.entries())],
  get: [
    "key/ default/?",
    (self: Dict, key: Value, missing: Value = null) => orElse(self.get(key), () => missing),
  ],
  items: ["", (self: Dict) => new DictView("items", self)],
  keys: ["", (self: Dict) => new DictView("keys", self)],
  values: ["", (self: Dict) => new DictView("values", self)],
};
