import { assignedValue, compileTarget } from "./assignment.ts";
import { compileExpression } from "./compile-expression.ts";
import { fail, unsupported } from "./errors.ts";
import { undeclared, innerFrame, type Frame } from "./symbols.ts";
import { nodesIn, type Body, type For } from "./nodes.ts";
import { Variables, enter, leave, type Run, type Step } from "./run.ts";
import { isTrue, iterate, sizeOf } from "./sequences.ts";
import { Iteration, type Value, Callable, Undefined, orElse } from "./values.ts";

type CompileBody = (body: Body, frame: Frame) => Step;

export function compileLoop(node: For, frame: Frame, compileBody: CompileBody): Step {
  for (const child of nodesIn(node))
    if (child.type === "Name" && child.name === "loop" && child.context === "store")
      fail("Can't assign to special loop variable in for-loop target");

  const loopFrame = innerFrame(frame, true);
  const usesLoop = undeclared(node.body, ["loop"]).size > 0;
  const loopIdentifier = usesLoop ? loopFrame.symbols.declare("loop") : null;
  loopFrame.symbols.visit(node.target, true);
  for (const statement of node.body) loopFrame.symbols.visit(statement);
  const assign = compileTarget(node.target, loopFrame);
  const body = compileBody(node.body, loopFrame);
  const selected = compileSelection(node, frame);
  const otherwise = compileOtherwise(node, frame, compileBody);
  const iterable = compileExpression(node.iterable, frame);

  return (run) => {
    const loop = new Loop(selected(run, iterable(run)));
    let isCompleted = false;
    for (let item = loop.next(); item !== undefined; item = loop.next()) {
      assign(run, item);
      if (loopIdentifier !== null) run.variables.set(loopIdentifier, loop.variable);
      enter(loopFrame.symbols, run);
      const word = body(run);
      if (word === "break") break;
      // As in jinja2, an iteration that `break` or `continue` ended does not count for `else`.
      isCompleted ||= word === undefined;
    }
    leave(loopFrame.symbols, run);
    return isCompleted ? undefined : otherwise(run);
  };
}

/** Returns a function that yields the items for which the test of the loop is true. */
function compileSelection(node: For, outer: Frame): (run: Run, items: Value) => Value {
  if (node.test === null) return (_, items) => items;
  const frame = innerFrame(outer, false);
  frame.symbols.visit(node.target, true);
  frame.symbols.visit(node.test);
  const assign = compileTarget(node.target, frame);
  const test = compileExpression(node.test, frame);
  function* select(outerRun: Run, items: Iterable<Value>): Generator<Value> {
    const run = { ...outerRun, variables: new Variables(outerRun.variables) };
    enter(frame.symbols, run);
    for (const item of items) {
      assign(run, item);
      if (isTrue(test(run))) yield assignedValue(node.target, item);
    }
  }
  return (run, items) => new Iteration(select(run, iterate(items)));
}

function compileOtherwise(node: For, outer: Frame, compileBody: CompileBody): Step {
  if (node.otherwise.length === 0) return () => undefined;
  const frame = innerFrame(outer, outer.isInLoop);
  for (const statement of node.otherwise) frame.symbols.visit(statement);
  const body = compileBody(node.otherwise, frame);
  return (run) => {
    enter(frame.symbols, run);
    const word = body(run);
    leave(frame.symbols, run);
    return word;
  };
}

/** The iterations of a `for` loop, and its variable `loop`. */
class Loop {
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
