import { childrenOf, type Node } from "./nodes.ts";
import { lengthOf } from "./text.ts";
import type { Value } from "./values.ts";

/** The names that the statements of a scope use: the template, the body of a loop, a macro or another block. */
export class Scope {
  readonly #outer: Scope | null;
  readonly #names = new Set<string>();
  readonly #stored = new Set<string>();
  readonly #inner = new Map<object, Scope>();
  /**
   * Names without a value until the scope assigns them, although the caller may pass them: as in jinja2, these are known before
   * the template runs.
   */
  readonly hidden = new Set<string>();

  constructor(outer: Scope | null, parameters: Iterable<Node>, nodes: Iterable<Node>) {
    this.#outer = outer;
    for (const node of parameters) this.#visit(node, true);
    for (const node of nodes) this.#visit(node);
  }

  /** Returns the scope of a block inside this one, which `key` identifies. */
  inner(key: object, parameters: readonly Node[], nodes: Iterable<Node>): Scope {
    const scope = this.#inner.get(key) ?? new Scope(this, parameters, nodes);
    this.#inner.set(key, scope);
    return scope;
  }

  #has(name: string): boolean {
    return this.#names.has(name) || (this.#outer !== null && this.#outer.#has(name));
  }

  #store(name: string, isParameter: boolean): void {
    this.#stored.add(name);
    if (isParameter) this.hidden.delete(name);
    else if (!this.#has(name)) this.hidden.add(name);
    this.#names.add(name);
  }

  /** Adds the names of a node of this scope, without those of scopes inside it. */
  #visit(node: Node, isParameter = false): void {
    switch (node.type) {
      case "Name":
        if (isParameter || node.context !== "load")
          this.#store(node.name, isParameter || node.context === "param");
        else this.#names.add(node.name);
        return;
      case "NamespaceName":
        return void this.#names.add(node.name);
      case "If": {
        this.#visit(node.test);
        const before = new Set(this.#stored);
        for (const part of [...node.body, ...node.elifs, ...node.otherwise]) this.#visit(part);
        // A variable that only some branches assign has its earlier value in the others.
        for (const name of this.#stored) if (!before.has(name)) this.hidden.delete(name);
        return;
      }
      case "Macro":
        return this.#store(node.name!, false);
      case "Assign":
        this.#visit(node.node);
        return this.#visit(node.target);
      case "For":
        return this.#visit(node.iterable);
      case "Generation":
        return;
      case "FilterBlock":
        return this.#visit(node.filter);
      case "With":
        return node.values.forEach((value) => this.#visit(value));
      case "AssignBlock":
        return this.#visit(node.target);
      default:
        for (const child of childrenOf(node)) this.#visit(child, isParameter);
    }
  }
}

/** The variables of a scope, and those around it. */
export class Variables {
  readonly #values: Map<string, Value | undefined>;
  readonly #outer: Variables | null;

  constructor(outer: Variables | null, values: Iterable<readonly [string, Value | undefined]>) {
    this.#outer = outer;
    this.#values = new Map(values);
  }
  get(name: string): Value | undefined {
    return this.#values.has(name) ? this.#values.get(name) : this.#outer?.get(name);
  }
  set(name: string, value: Value | undefined): void {
    this.#values.set(name, value);
  }
}

/** Text that is written. */
export class Output {
  readonly #parts: string[] = [];
  /** In UTF-16 units. */
  length = 0;

  write(text: string): void {
    this.#parts.push(text);
    this.length += text.length;
  }
  get text(): string {
    return this.#parts.join("");
  }
}

/** The text of a rendering, and its parts inside of `{% generation %}`. */
export class Context {
  readonly output = new Output();
  readonly #generated: { start: number; characters: number }[] = [];

  /** Notes the text of a `{% generation %}`. As in transformers, its start is what the template itself has written so far. */
  addGenerated(text: string): void {
    this.#generated.push({ start: this.output.length, characters: lengthOf(text) });
  }
  /** Half-open ranges in UTF-16 units of `text`, in the order in which the blocks end. */
  generatedIn(text: string): [start: number, end: number][] {
    return this.#generated.map(({ start, characters }) => {
      let end = start;
      for (let i = 0; i < characters && end < text.length; i++)
        end += text.codePointAt(end)! > 0xffff ? 2 : 1;
      return [start, end];
    });
  }
}

/** The state of a rendering in a scope. */
export interface Run {
  readonly context: Context;
  readonly scope: Scope;
  readonly variables: Variables;
  readonly output: Output;
}

/** Enters a scope: the template's, or that of a block inside the current one. */
export function enter(run: Run, scope: Scope): Run {
  const hidden = [...scope.hidden].map((name) => [name, undefined] as const);
  return { ...run, scope, variables: new Variables(run.variables, hidden) };
}
