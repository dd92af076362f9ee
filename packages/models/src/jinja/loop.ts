import { unsupported } from "./errors.ts";
import { iterate, sizeOf } from "./sequences.ts";
import { type Value, Callable, Undefined, orElse } from "./values.ts";

/** The iterations of a `for` loop, and its variable `loop`. */
export class Loop {
  readonly #iterable: Value;
  #iterator: Iterator<Value>;
  #index = -1;
  #length: number | undefined;
  #next: Value | undefined;
  #current: Value | undefined;
  #previous: Value | undefined;
  /** The value of `loop`. */
  readonly variable = new Callable(
    "LoopContext",
    () => unsupported("loop()"),
    (name) => this.#attribute(name),
    () => `<LoopContext ${this.#index + 1}/${this.#size()}>`,
  );

  constructor(iterable: Value) {
    this.#iterable = iterable;
    this.#iterator = iterate(iterable)[Symbol.iterator]();
  }

  /** Goes to the next item; undefined after the last. */
  next(): Value | undefined {
    const item = this.#peek();
    this.#next = undefined;
    if (item === undefined) return undefined;
    this.#index += 1;
    this.#previous = this.#current;
    this.#current = item;
    return item;
  }

  #peek(): Value | undefined {
    if (this.#next !== undefined) return this.#next;
    const { done, value } = this.#iterator.next();
    if (done !== true) this.#next = value;
    return this.#next;
  }

  #size(): number {
    if (this.#length !== undefined) return this.#length;
    const size = sizeOf(this.#iterable);
    if (size !== undefined) return (this.#length = size);
    const iterator = this.#iterator;
    const rest: Value[] = [];
    for (let step = iterator.next(); step.done !== true; step = iterator.next()) rest.push(step.value);
    this.#iterator = rest[Symbol.iterator]();
    return (this.#length = rest.length + this.#index + 1 + (this.#next === undefined ? 0 : 1));
  }

  #attribute(name: string): Value | undefined {
    if (["changed", "cycle", "depth", "depth0"].includes(name)) return unsupported(`loop.${name}`);
    return Object.hasOwn(this.#attributes, name) ? this.#attributes[name]!() : undefined;
  }

  readonly #attributes: Readonly<Record<string, () => Value>> = {
    index0: () => this.#index,
    index: () => this.#index + 1,
    length: () => this.#size(),
    revindex: () => this.#size() - this.#index,
    revindex0: () => this.#size() - this.#index - 1,
    first: () => this.#index === 0,
    last: () => this.#peek() === undefined,
    previtem: () => orElse(this.#previous, () => new Undefined("there is no previous item")),
    nextitem: () => orElse(this.#peek(), () => new Undefined("there is no next item")),
  };
}
