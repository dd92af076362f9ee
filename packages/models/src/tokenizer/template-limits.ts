import { Environment, Interpreter, parse, tokenize } from "@huggingface/jinja";
import { isNode, type TemplateNode } from "./template-node.ts";

/**
 * Steps of one rendering, about 0.1 µs each. A usual template takes 10 to 100 for each message, and one for a few characters of
 * its text.
 */
const baseSteps = 100_000;
const stepsPerMessage = 2_000;
const stepsPerCharacter = 8;
/** The library reports a stack overflow as a missing variable. An `elif` and a call of a macro nest once or more. */
const maxDepth = 400;
const maxRange = 50_000;
/** In characters. The longest templates, with tools, have about ten thousand. */
const maxSource = 1_000_000;
/** The library takes time in proportion to the square of each run of whitespace. The longest templates reach a tenth. */
const maxWhitespaceSquares = 10_000_000;

/** How a parent uses a node's value: at no cost that grows with its size, as a copy, in a loop, or by walking through all of it. */
type Use = "refer" | "copy" | "loop" | "walk";

interface Costs {
  readonly use: Use;
  /** Steps besides those for the value. */
  readonly steps: number;
  /** Whether the value is the object of a member expression. */
  readonly isObject: boolean;
}

/** A value of jinja's runtime. */
interface Value {
  readonly type: string;
  value: unknown;
  readonly builtins?: ReadonlyMap<string, Value>;
}

type RuntimeFunction = (args: readonly Value[], scope: Environment) => Value;

/** The methods of jinja's interpreter that are overridden or called here; all but `evaluate` are private. */
interface OpenInterpreter {
  evaluate(node: TemplateNode | undefined, environment: Environment): Value;
  evaluateArguments(
    args: readonly TemplateNode[],
    environment: Environment,
  ): [readonly Value[], ReadonlyMap<string, Value>];
  evaluateMemberExpression(node: TemplateNode, environment: Environment): Value;
  evaluateBinaryExpression(node: TemplateNode, environment: Environment): Value;
  applyFilter(operand: Value, filter: TemplateNode, environment: Environment): Value;
}

const OpenInterpreter = Interpreter as unknown as new (environment: Environment) => OpenInterpreter;

/** Parses a template. Throws for one that would take long to parse. */
export function parseTemplate(source: string): TemplateNode {
  if (source.length > maxSource) throw new Error(`the template has more than ${maxSource} characters`);
  let squares = 0;
  for (const { 0: spaces } of source.matchAll(/\s+/g))
    if ((squares += spaces.length ** 2) > maxWhitespaceSquares)
      throw new Error("the template has too many spaces or line breaks in a row");
  // As in transformers.
  return parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true }));
}

/**
 * Returns a function that renders a parsed template with variables, within limits on the sum of its work: anyone can publish a
 * model, and its template runs when the model loads. Every evaluated node takes a step, and every value takes steps in
 * proportion to what is done with its content, so that the steps bound time, memory and the length of the text.
 */
export function boundedRenderer(
  program: TemplateNode,
  globals: Readonly<Record<string, unknown>>,
): (
  variables: Readonly<Record<string, unknown>>,
  messages: readonly { readonly content?: unknown }[],
) => string {
  const costs = new Map<TemplateNode, Costs>();
  addCosts(program, costs);
  return (variables, messages) => {
    const environment = new Environment();
    const all = { ...constants, ...globals, ...variables, messages };
    for (const [name, value] of Object.entries(all)) environment.set(name, value);
    const characters = messages.reduce((sum, { content }) => sum + String(content).length, 0);
    const steps = baseSteps + stepsPerMessage * messages.length + stepsPerCharacter * characters;
    const text = new BoundedInterpreter(environment, costs, steps).evaluate(program, environment);
    return text.value as string;
  };
}

const constants = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
  raise_exception(message: string) {
    throw new Error(message);
  },
  range(first: number, second?: number, step = 1) {
    const [start, stop] = second === undefined ? [0, first] : [first, second];
    const count = Math.ceil((stop - start) / step);
    if (step === 0 || !(count <= maxRange)) throw new Error(`range() returns more than ${maxRange} numbers`);
    return Array.from({ length: Math.max(0, count) }, (_, i) => start + i * step);
  },
};

const printed = new Set(["body", "alternate", "defaultBlock"]);
const walkedFields: Readonly<Record<string, readonly string[]>> = {
  CallExpression: ["args"],
  KeywordArgumentExpression: ["value"],
  SpreadExpression: ["argument"],
  KeywordSpreadExpression: ["argument"],
  TestExpression: ["operand"],
};
const copying = new Set([
  "BinaryExpression",
  "CallExpression",
  "FilterExpression",
  "ArrayLiteral",
  "TupleLiteral",
]);
/** Steps of nodes that cost more than others: jinja makes a map, or throws an error. */
const moreSteps: Readonly<Record<string, number>> = { ObjectLiteral: 8, Break: 20, Continue: 20 };

/** Adds the costs of a node and its children to `costs`, and returns the number of nodes. */
function addCosts(
  node: TemplateNode,
  costs: Map<TemplateNode, Costs>,
  use: Use = copying.has(node.type) ? "copy" : "refer",
  isObject = false,
): number {
  let size = 1;
  for (const [field, value] of Object.entries(node)) {
    const childUse = useOf(node, field);
    for (const child of nodesIn(value)) {
      const isMember = node.type === "MemberExpression" && field === "object";
      // `{% for … if … %}` loops over the left side, which the interpreter evaluates without the expression around it.
      const items = childUse === "loop" && child.type === "SelectExpression" ? child["lhs"] : null;
      size += addCosts(child, costs, childUse, isMember);
      if (isNode(items)) costs.set(items, { ...costs.get(items)!, use: "loop" });
    }
  }
  // Defining a macro walks its body.
  const walked = node.type === "Macro" || node.type === "CallStatement" ? size : 0;
  costs.set(node, { use, isObject, steps: 1 + walked + (moreSteps[node.type] ?? 0) });
  return size;
}

function useOf(node: TemplateNode, field: string): Use | undefined {
  if (node.type === "For" && field === "iterable") return "loop";
  const operator = node["operator"] as { readonly value: string } | undefined;
  const isLogical = operator?.value === "and" || operator?.value === "or";
  const isWalked =
    printed.has(field) ||
    walkedFields[node.type]?.includes(field) === true ||
    (node.type === "BinaryExpression" && !isLogical);
  return isWalked ? "walk" : undefined;
}

function nodesIn(value: unknown): readonly TemplateNode[] {
  if (isNode(value)) return [value];
  if (Array.isArray(value)) return value.filter(isNode);
  return value instanceof Map ? [...value].flat().filter(isNode) : [];
}

class BoundedInterpreter extends OpenInterpreter {
  readonly #costs: ReadonlyMap<TemplateNode, Costs>;
  readonly #limit: number;
  #steps = 0;
  #depth = 0;
  /** Objects of the member expressions that are being evaluated. */
  readonly #objects: Value[] = [];
  readonly #methods = new WeakSet<Value>();

  constructor(environment: Environment, costs: ReadonlyMap<TemplateNode, Costs>, limit: number) {
    super(environment);
    this.#costs = costs;
    this.#limit = limit;
  }

  #take(steps: number): void {
    this.#steps += steps;
    // Also true for NaN.
    if (!(this.#steps <= this.#limit)) throw new Error(`the template takes more than ${this.#limit} steps`);
  }

  override evaluate(node: TemplateNode | undefined, environment: Environment): Value {
    if (node === undefined) return super.evaluate(node, environment);
    if (node.type === evaluated) return node["value"] as Value;
    const { use, steps, isObject } = this.#costs.get(node)!;
    // A variable is looked up in every scope around it.
    this.#take(steps + (this.#depth >> 4));
    if (this.#depth >= maxDepth) throw new Error(`the template nests more than ${maxDepth} levels`);
    this.#depth += 1;
    let result: Value;
    try {
      result = super.evaluate(node, environment);
    } finally {
      this.#depth -= 1;
    }
    if (use === "walk") this.#walk(result);
    else if (use === "loop") this.#take(16 * sizeOf(result));
    else if (use === "copy") this.#take(sizeOf(result));
    // The lookup throws and catches an error.
    if (result.type === "UndefinedValue" && node.type === "Identifier") this.#take(20);
    if (isObject) this.#objects.push(result);
    return result;
  }

  /** Takes steps for all of a value, as often as it occurs in itself; more for each item and level if given. */
  #walk(value: Value, perItem = 0, perLevel = 0, level = 0): void {
    this.#take(1 + perItem + perLevel * level);
    const content = value.value;
    if (typeof content === "string") this.#take(content.length >> 3);
    else if (Array.isArray(content))
      for (const item of content as readonly Value[]) this.#walk(item, perItem, perLevel, level + 1);
    else if (content instanceof Map)
      for (const [key, item] of content as ReadonlyMap<string, Value>) {
        this.#take(key.length >> 3);
        this.#walk(item, perItem, perLevel, level + 1);
      }
  }

  /** Counts each call of a method of a string or an object, also one through a variable. */
  override evaluateMemberExpression(node: TemplateNode, environment: Environment): Value {
    const at = this.#objects.length;
    const result = super.evaluateMemberExpression(node, environment);
    const object = this.#objects[at]!;
    this.#objects.length = at;
    const property = node["property"];
    if (isNode(property) && property.type === "SliceExpression") {
      this.#take(typeof object.value === "string" ? object.value.length : sizeOf(object));
    } else if (result.type === "FunctionValue" && !this.#methods.has(result)) {
      this.#methods.add(result);
      const method = result.value as RuntimeFunction;
      result.value = ((args, scope) => {
        if (result === object.builtins?.get("replace")) this.#replace(object, args);
        else if (result === object.builtins?.get("split")) this.#search(object, args[0]);
        else this.#walk(object, result === object.builtins?.get("dictsort") ? sortSteps : 0);
        return method(args, scope);
      }) satisfies RuntimeFunction;
    }
    return result;
  }

  override evaluateBinaryExpression(node: TemplateNode, environment: Environment): Value {
    const { value: operator } = node["operator"] as { readonly value: string };
    if (operator !== "in" && operator !== "not in") return super.evaluateBinaryExpression(node, environment);
    const left = this.evaluate(node["left"] as TemplateNode, environment);
    const right = this.evaluate(node["right"] as TemplateNode, environment);
    this.#search(right, left);
    const operands = { left: { type: evaluated, value: left }, right: { type: evaluated, value: right } };
    return super.evaluateBinaryExpression({ ...node, ...operands }, environment);
  }

  override applyFilter(operand: Value, filter: TemplateNode, environment: Environment): Value {
    const callee = filter.type === "CallExpression" ? (filter["callee"] as TemplateNode) : filter;
    const name = String(callee["value"]);
    if (referring.has(name)) return super.applyFilter(operand, filter, environment);
    if (filter.type !== "CallExpression" || !multiplying.has(name)) {
      this.#walk(operand, sorting.has(name) ? sortSteps : 0);
      return super.applyFilter(operand, filter, environment);
    }
    const [args, named] = this.evaluateArguments(filter["args"] as TemplateNode[], environment);
    const option = (at: number, key: string) => args[at] ?? named.get(key);
    if (name === "replace") this.#replace(operand, args);
    else if (name === "indent") {
      const lines = String(operand.value).split("\n").length;
      this.#walk(operand);
      this.#take((lines * Math.abs(Number(option(0, "width")?.value ?? 4))) / 8);
    } else if (name === "tojson") {
      const separators = JSON.stringify(textsIn(named.get("separators"))).length >> 3;
      this.#walk(operand, separators, Math.abs(Number(named.get("indent")?.value ?? 0)));
    } else if (name === "join") {
      const separator = textOf(option(0, "separator")).length;
      this.#walk(operand, separator >> 3);
      if (typeof operand.value === "string") this.#take(operand.value.length * (1 + separator / 8));
    } else {
      // Sorting and mapping read an attribute of each item, by its path.
      const path = textOf(option(2, "attribute")).length;
      this.#walk(operand, path + (name === "sort" ? sortSteps * (1 + path) : 0));
    }
    const passed = [
      ...args.map((value) => ({ type: evaluated, value })),
      ...[...named].map(([key, value]) => ({
        type: "KeywordArgumentExpression",
        key: { value: key },
        value: { type: evaluated, value },
      })),
    ];
    return super.applyFilter(operand, { ...filter, args: passed }, environment);
  }

  /** Takes steps for the search and for the text that it inserts. */
  #replace(operand: Value, args: readonly Value[]): void {
    const [text, old, put] = [textOf(operand), textOf(args[0]), textOf(args[1])];
    this.#search(operand, args[0]);
    this.#take(((text.split(old).length + 1) * put.length) / 8);
  }

  /** Takes steps for a search, whose time can grow with the product of both lengths. */
  #search(operand: Value, wanted: Value | undefined): void {
    this.#walk(operand, (textOf(operand).length * textOf(wanted).length) / 64);
  }
}

/** The type of a node whose value is known. */
const evaluated = "Evaluated";
/** Filters that take the same time for any operand. */
const referring = new Set(["safe", "list", "first", "last", "length", "default"]);
/** Filters whose work or result is a product of the operand and an argument. */
const multiplying = new Set(["indent", "tojson", "join", "replace", "sort", "map"]);
const sorting = new Set(["sort", "dictsort"]);
/** The binary logarithm of the longest array. */
const sortSteps = 20;

/** Steps for copying a value, without what it contains. */
function sizeOf({ value }: Value): number {
  if (typeof value === "string") return value.length >> 3;
  if (Array.isArray(value)) return value.length;
  return value instanceof Map ? value.size : 0;
}

const textOf = (value: Value | undefined): string => (typeof value?.value === "string" ? value.value : "");

const textsIn = (value: Value | undefined): readonly unknown[] =>
  Array.isArray(value?.value) ? value.value.map((item: Value) => item.value) : [];
