import type { Operator } from "./arithmetic.ts";
import type { Comparison } from "./compare.ts";
import type { Value } from "./values.ts";

/** A node of a template's syntax tree. The fields have the order in which jinja2 visits them. */
export type Node = Expression | Statement | Operand | Pair;

export interface Arguments {
  readonly args: readonly Expression[];
  readonly keywords: readonly Keyword[];
}

export interface Keyword {
  readonly type: "Keyword";
  readonly key: string;
  readonly value: Expression;
}

export interface Name {
  readonly type: "Name";
  readonly name: string;
  readonly context: "load" | "store" | "param";
}

export interface Operand {
  readonly type: "Operand";
  readonly operator: Comparison;
  readonly expression: Expression;
}

export interface Pair {
  readonly type: "Pair";
  readonly key: Expression;
  readonly value: Expression;
}

export interface Filter extends Arguments {
  readonly type: "Filter" | "Test";
  /** Null: the text of a block. */
  readonly node: Expression | null;
  readonly name: string;
}

export type Target =
  | Name
  | { readonly type: "NamespaceName"; readonly name: string; readonly attribute: string }
  | { readonly type: "Tuple"; readonly items: readonly Target[] };

export type Expression =
  | Target
  | Filter
  | (Arguments & { readonly type: "Call"; readonly node: Expression })
  | Keyword
  | { readonly type: "Const"; readonly value: Value }
  | { readonly type: "TemplateData"; readonly data: string }
  | { readonly type: "Tuple" | "List"; readonly items: readonly Expression[] }
  | { readonly type: "Dict"; readonly items: readonly Pair[] }
  | {
      readonly type: "Conditional";
      readonly test: Expression;
      readonly yes: Expression;
      readonly no: Expression | null;
    }
  | { readonly type: "GetAttribute"; readonly node: Expression; readonly attribute: string }
  | { readonly type: "GetItem"; readonly node: Expression; readonly key: Expression }
  | {
      readonly type: "Slice";
      readonly start: Expression | null;
      readonly stop: Expression | null;
      readonly step: Expression | null;
    }
  | {
      readonly type: "Binary";
      readonly left: Expression;
      readonly operator: Operator | "and" | "or";
      readonly right: Expression;
    }
  | { readonly type: "Unary"; readonly operator: "-" | "+" | "not"; readonly node: Expression }
  | { readonly type: "Compare"; readonly expression: Expression; readonly operands: readonly Operand[] }
  | { readonly type: "Concat"; readonly nodes: readonly Expression[] };

export type Body = readonly Statement[];

export interface For {
  readonly type: "For";
  readonly target: Target;
  readonly iterable: Expression;
  readonly body: Body;
  readonly otherwise: Body;
  readonly test: Expression | null;
}

export interface If {
  readonly type: "If";
  readonly test: Expression;
  readonly body: Body;
  readonly elifs: readonly If[];
  readonly otherwise: Body;
}

/** A macro, or the block of `{% generation %}`, which is a macro as well. */
export interface Macro {
  readonly type: "Macro" | "Generation";
  readonly name: string | null;
  readonly args: readonly Name[];
  readonly defaults: readonly Expression[];
  readonly body: Body;
}

export type Statement =
  | For
  | If
  | Macro
  | { readonly type: "Output"; readonly nodes: readonly Expression[] }
  | { readonly type: "FilterBlock"; readonly body: Body; readonly filter: Filter }
  | {
      readonly type: "With";
      readonly targets: readonly Target[];
      readonly values: readonly Expression[];
      readonly body: Body;
    }
  | { readonly type: "Assign"; readonly target: Target; readonly node: Expression }
  | {
      readonly type: "AssignBlock";
      readonly target: Target;
      readonly filter: Filter | null;
      readonly body: Body;
    }
  | { readonly type: "Break" | "Continue" };

/** The nodes directly below a node. */
export function* childrenOf(node: Node): Generator<Node> {
  for (const field of Object.values(node)) {
    if (Array.isArray(field)) yield* field.filter(isNode);
    else if (isNode(field)) yield field;
  }
}

/** Whether a field of a node is a node: a constant's value has a type as well. */
function isNode(field: unknown): field is Node {
  return typeof field === "object" && field !== null && Object.getPrototypeOf(field) === Object.prototype;
}

/** A node and all nodes below it. */
export function* nodesIn(node: Node): Generator<Node> {
  yield node;
  for (const child of childrenOf(node)) yield* nodesIn(child);
}
