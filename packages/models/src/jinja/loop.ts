import { equals } from "./compare.ts";
import { fail } from "./errors.ts";
import { builtin } from "./parameters.ts";
import { iterate, sizeOf } from "./sequences.ts";
import { Callable, Tuple, Undefined, orElse, type Value } from "./values.ts";
import { spend } from "./work.ts";

/** The iterations of a `for` loop, and its variable `loop`. */
export class Loop {
  readonly #iterable: Value;
  #iterator: Iterator<Value>;
  readonly #depth: number;
  #index = -1;
  #length: number | undefined;
  #next: Value | undefined;
  #current: Value | undefined;
  #previous: Value | undefined;
  #lastChanged: Value | undefined;
  /** The value of `loop`. */
  readonly variable: Callable;

  /** @param recurse Renders the loop with other items; undefined if the loop is not recursive. */
  constructor(
    iterable: Value,
    depth: number,
    recurse: ((iterable: Value, depth: number) => string) | undefined,
  ) {
    this.#iterable = iterable;
    this.#iterator = iterate(iterable)[Symbol.iterator]();
    this.#depth = depth;
    const call = (items: Value) =>
      recurse === undefined
        ? fail("The loop must have the 'recursive' marker to be called recursively.")
        : recurse(items, depth + 1);
    this.variable = new Callable(
      "LoopContext",
      builtin("loop", "iterable", call).call,
      (name) => this.#attribute(name),
      () => `<LoopContext ${this.#index + 1}/${this.#size()}>`,
    );
  }

  /** Goes to the next item; undefined after the last. */
  next(): Value | undefined {
    spend(1);
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
      case "depth":
        return this.#depth + 1;
      case "depth0":
        return this.#depth;
      case "previtem":
        return orElse(this.#previous, () => new Undefined("there is no previous item"));
      case "nextitem":
        return orElse(this.#peek(), () => new Undefined("there is no next item"));
      case "cycle":
        return new Callable("method", (args) => this.#cycle(args));
      case "changed":
        return new Callable("method", (args) => this.#hasChanged(new Tuple(args)));
      default:
        return undefined;
    }
  }

  #cycle(args: readonly Value[]): Value {
    return orElse(args[this.#index % args.length], () => fail("no items for cycling given"));
  }

  #hasChanged(value: Tuple): boolean {
    if (this.#lastChanged !== undefined && equals(this.#lastChanged, value)) return false;
    this.#lastChanged = value;
    return true;
  }
}
