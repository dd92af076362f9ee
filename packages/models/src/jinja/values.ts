import { fail, unsupported } from "./errors.ts";

/**
 * A Python value. None is null, a list is an array, an integer is a safe integer or a bigint beyond, and text is a string.
 */
export type Value = null | boolean | number | bigint | string | Value[] | PythonObject;

/** A Python value that JavaScript has no type for. `type` is the name of its type in Python. */
interface PythonObject {
  readonly type: string;
}

export class Float implements PythonObject {
  readonly type = "float";
  constructor(readonly value: number) {}
}

export class Tuple implements PythonObject {
  readonly type = "tuple";
  constructor(readonly items: readonly Value[]) {}
}

/** Text that needs no escaping, from the filter `safe`. */
export class Markup implements PythonObject {
  readonly type = "Markup";
  constructor(readonly text: string) {}
}

/** The value of what does not exist; most operations on it throw `error`. */
export class Undefined implements PythonObject {
  readonly type = "Undefined";
  constructor(readonly message: string) {}
  fail(): never {
    fail(this.message);
  }
}

export class Dict implements PythonObject {
  readonly type = "dict";
  readonly #entries = new Map<unknown, readonly [Value, Value]>();

  constructor(entries: Iterable<readonly [Value, Value]> = []) {
    for (const [key, value] of entries) this.set(key, value);
  }
  get size(): number {
    return this.#entries.size;
  }
  get(key: Value): Value | undefined {
    return this.#entries.get(hashKey(key))?.[1];
  }
  has(key: Value): boolean {
    return this.#entries.has(hashKey(key));
  }
  set(key: Value, value: Value): void {
    const hash = hashKey(key);
    // A key that is equal to an earlier key keeps the earlier key.
    this.#entries.set(hash, [orElse(this.#entries.get(hash)?.[0], () => key), value]);
  }
  entries(): IterableIterator<readonly [Value, Value]> {
    return this.#entries.values();
  }
  *keys(): Generator<Value> {
    for (const [key] of this.entries()) yield key;
  }
}

/** `keys()`, `values()` or `items()` of a dict. */
export class DictView implements PythonObject {
  readonly type: string;
  constructor(
    readonly kind: "keys" | "values" | "items",
    readonly dict: Dict,
  ) {
    this.type = `dict_${kind}`;
  }
  *[Symbol.iterator](): Generator<Value> {
    for (const [key, value] of this.dict.entries())
      yield this.kind === "keys" ? key : this.kind === "values" ? value : new Tuple([key, value]);
  }
}

export class Range implements PythonObject {
  readonly type = "range";
  readonly length: number;
  constructor(
    readonly start: number,
    readonly stop: number,
    readonly step: number,
  ) {
    this.length = Math.max(0, Math.ceil((stop - start) / step));
  }
  at(index: number): number {
    return this.start + index * this.step;
  }
  *[Symbol.iterator](): Generator<Value> {
    for (let i = 0; i < this.length; i++) yield this.at(i);
  }
}

/** A generator or another iterator, which is consumed once. */
export class Iteration implements PythonObject {
  readonly type = "generator";
  readonly #iterator: Iterator<Value>;
  constructor(values: Iterable<Value>) {
    this.#iterator = values[Symbol.iterator]();
  }
  next(): IteratorResult<Value> {
    return this.#iterator.next();
  }
  /** Like a generator in Python, it continues where an earlier loop stopped. */
  *[Symbol.iterator](): Generator<Value> {
    for (let step = this.next(); step.done !== true; step = this.next()) yield step.value;
  }
}

/** `namespace(…)`, the only object that a template may change. */
export class Namespace implements PythonObject {
  readonly type = "Namespace";
  constructor(readonly attributes: Dict) {}
}

export type Keywords = ReadonlyMap<string, Value>;
export type Call = (args: readonly Value[], keywords: Keywords) => Value;

/** A function, method or another object that can be called. */
export class Callable implements PythonObject {
  constructor(
    readonly type: string,
    readonly call: Call,
    /** Attributes of the object, by name. */
    readonly attribute: (name: string) => Value | undefined = () => undefined,
    /** Returns the text that Python prints; undefined if that contains an address. */
    readonly printed?: () => string,
  ) {}
}

/** Like `??`, which would take None for a missing value. */
export function orElse(value: Value | undefined, other: () => Value): Value {
  return value === undefined ? other() : value;
}

export function isText(value: Value): value is string | Markup {
  return typeof value === "string" || value instanceof Markup;
}

/** The items of a list or tuple; undefined for other values. */
export function itemsOf(value: Value): readonly Value[] | undefined {
  return Array.isArray(value) ? value : value instanceof Tuple ? value.items : undefined;
}

const typeNames = { boolean: "bool", number: "int", bigint: "int", string: "str" };

export function typeName(value: Value): string {
  if (value === null) return "NoneType";
  if (Array.isArray(value)) return "list";
  return typeof value === "object" ? value.type : typeNames[typeof value as keyof typeof typeNames];
}

/** Returns a key for JavaScript's maps that is the same for values that are equal in Python. */
export function hashKey(value: Value): unknown {
  if (typeof value === "boolean") return Number(value);
  if (value instanceof Float) return value.value === 0 ? 0 : value.value;
  if (value instanceof Markup) return value.text;
  if (value instanceof Undefined) return Undefined;
  const isView = value instanceof DictView && value.kind !== "values";
  if (Array.isArray(value) || value instanceof Dict || isView) fail(`unhashable type: '${typeName(value)}'`);
  if (value instanceof Range) unsupported("a range as a key");
  if (value instanceof Tuple) return Symbol.for(`periodic-eval ${value.items.map(keyText).join()}`);
  return value;
}

function keyText(item: Value): string {
  const key = hashKey(item);
  if (typeof key === "object" && key !== null) unsupported("a tuple of objects as a key");
  return typeof key === "symbol" ? `(${key.description})` : `${typeof key} ${JSON.stringify(String(key))}`;
}
