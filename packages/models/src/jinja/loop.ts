import { unsupported } from "./errors.ts";
import { iterate, sizeOf } from "./sequences.ts";
import { Callable, Undefined, orElse, type Value } from "./values.ts";

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
    switch (name) {
      case "index0":
        return this.#index;
      case "index":
        return this.#index + 1;
      case "length":
        return this.#size();
      case "revindex":
        return this.#size() - this.#index;
      case "revindex0":
        return this.#size() - this.#index - 1;
      case "first":
        return this.#index === 0;
      case "last":
        return this.#peek() === undefined;
      case "previtem":
        return orElse(this.#previous, () => new Undefined("there is no previous item"));
      case "nextitem":
        return orElse(this.#peek(), () => new Undefined("there is no next item"));
      case "changed":
      case "cycle":
      case "depth":
      case "depth0":
        return unsupported(`loop.${name}`);
      default:
        return undefined;
    }
  }
}
