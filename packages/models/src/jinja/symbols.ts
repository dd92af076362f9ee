import { childrenOf, type Node } from "./nodes.ts";
import { fail } from "./errors.ts";

/** How a variable of a frame gets its value when the frame is entered. */
export type Load =
  | { readonly type: "parameter" }
  | { readonly type: "resolve"; readonly name: string }
  | { readonly type: "alias"; readonly identifier: string }
  | { readonly type: "undefined" };

/**
 * The variables of a frame: the template, the body of a loop, a macro or another block with a scope. As in jinja2, they are
 * known before the template runs, so that the same name may be another variable than its last assignment suggests.
 */
export class Symbols {
  readonly #level: number;
  readonly #parent: Symbols | null;
  readonly #references = new Map<string, string>();
  readonly loads = new Map<string, Load>();
  readonly stores = new Set<string>();

  constructor(parent: Symbols | null, level = parent === null ? 0 : parent.#level + 1) {
    this.#parent = parent;
    this.#level = level;
  }

  /** The identifier of a variable; undefined if the name does not occur in this frame or one around it. */
  find(name: string): string | undefined {
    return this.#references.get(name) ?? this.#parent?.find(name);
  }

  #define(name: string, load: Load): string {
    const identifier = `${this.#level} ${name}`;
    this.#references.set(name, identifier);
    this.loads.set(identifier, load);
    return identifier;
  }

  declare(name: string): string {
    this.stores.add(name);
    return this.#define(name, { type: "parameter" });
  }

  #store(name: string): void {
    this.stores.add(name);
    if (this.#references.has(name)) return;
    const outer = this.#parent?.find(name);
    this.#define(name, outer === undefined ? { type: "undefined" } : { type: "alias", identifier: outer });
  }

  #load(name: string): void {
    if (this.find(name) === undefined) this.#define(name, { type: "resolve", name });
  }

  #copy(): Symbols {
    const copy = new Symbols(this.#parent, this.#level);
    copy.#update(this);
    return copy;
  }

  #update(other: Symbols): void {
    for (const [name, identifier] of other.#references) this.#references.set(name, identifier);
    for (const [identifier, load] of other.loads) this.loads.set(identifier, load);
    for (const name of other.stores) this.stores.add(name);
  }

  /** A variable that only some branches assign has its earlier value in the others. */
  #join(branches: readonly Symbols[]): void {
    const assigned = new Set(branches.flatMap(({ stores }) => [...stores]));
    for (const name of this.stores) assigned.delete(name);
    for (const branch of branches) this.#update(branch);
    for (const name of assigned) {
      const outer = this.#parent?.find(name);
      this.loads.set(
        this.find(name)!,
        outer === undefined ? { type: "resolve", name } : { type: "alias", identifier: outer },
      );
    }
  }

  /** Adds the variables of a node of this frame, without those of frames inside it. */
  visit(node: Node, isParameter = false): void {
    switch (node.type) {
      case "Name":
        if (isParameter || node.context === "param") this.declare(node.name);
        else if (node.context === "store") this.#store(node.name);
        else this.#load(node.name);
        return;
      case "NamespaceName":
        return this.#load(node.name);
      case "If": {
        this.visit(node.test);
        const branches = [node.body, node.elifs, node.otherwise].map((body) => {
          const branch = this.#copy();
          for (const statement of body) branch.visit(statement);
          return branch;
        });
        return this.#join(branches);
      }
      case "Macro":
        return this.#store(node.name!);
      case "Assign":
        this.visit(node.node);
        return this.visit(node.target);
      case "For":
        return this.visit(node.iterable);
      case "Generation":
        return;
      case "FilterBlock":
        return this.visit(node.filter);
      case "With":
        return node.values.forEach((value) => this.visit(value));
      case "AssignBlock":
        return this.visit(node.target);
      default:
        for (const child of childrenOf(node)) this.visit(child, isParameter);
    }
  }
}

/** Returns those of `names` that nodes read before they assign them. */
export function undeclared(nodes: Iterable<Node>, names: readonly string[]): Set<string> {
  const searched = new Set(names);
  const result = new Set<string>();
  const visit = (node: Node): void => {
    if (node.type === "Name") {
      if (node.context !== "load") searched.delete(node.name);
      else if (searched.has(node.name)) result.add(node.name);
    }
    for (const child of childrenOf(node)) visit(child);
  };
  for (const node of nodes) visit(node);
  return result;
}

/** A part of a template with variables, while it is compiled. */
export interface Frame {
  readonly symbols: Symbols;
  /** Whether assignments are visible in the whole template. */
  readonly isTop: boolean;
  /** Whether the code may not run, so that an unknown filter is an error only if it runs. */
  readonly isConditional: boolean;
  readonly isInLoop: boolean;
}

export function innerFrame(outer: Frame, isInLoop = outer.isInLoop): Frame {
  return { symbols: new Symbols(outer.symbols), isTop: false, isConditional: false, isInLoop };
}

export const conditionalFrame = (frame: Frame): Frame => ({ ...frame, isConditional: true });

export function identifierOf(frame: Frame, name: string): string {
  return frame.symbols.find(name) ?? fail(`the variable ${name} cannot be read here`);
}
