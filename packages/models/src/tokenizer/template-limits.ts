/** A node of jinja's syntax tree; its classes are not exported. */
export interface TemplateNode {
  type: string;
  [field: string]: unknown;
}

// A chat of a thousand messages takes a few thousand steps and renders to a few megabytes.
const maxSteps = 100_000;
const maxRange = 50_000;
const maxItems = 1_000_000;
const maxText = 16_000_000;

const stepName = "periodic_eval_step";
const sizeName = "periodic_eval_size";
const rangeName = "periodic_eval_range";

/**
 * Adds resource limits to a parsed template, in place: anyone can publish a model, and its template runs when the model
 * loads. Counts every iteration of a loop and every call of a macro, and checks the size of each value that a `set` or a
 * macro binds.
 */
export function addLimits(node: TemplateNode): void {
  for (const [field, value] of Object.entries(node)) {
    if (statementLists.has(field) && Array.isArray(value)) {
      const statements = (value as TemplateNode[]).flatMap((item) => [item, ...sizeOfSet(item)]);
      const first = field === "body" && bounded.has(node.type) ? [call(stepName, []), ...sizes(node)] : [];
      node[field] = [...first, ...statements];
    }
    visit(value);
  }
  if (node.type === "SelectExpression") {
    // Its test runs for each item, even if the body never runs.
    const operator = { type: "And", value: "and" };
    node["test"] = { type: "BinaryExpression", operator, left: call(stepName, [yes]), right: node["test"] };
  }
  const callee = node["callee"];
  if (node.type === "CallExpression" && isNode(callee) && callee["value"] === "range")
    callee["value"] = rangeName;
}

const statementLists = new Set(["body", "alternate", "defaultBlock"]);
const bounded = new Set(["For", "Macro", "CallStatement"]);

/** Returns the functions that the limits call, with fresh counters for one rendering. */
export function limitFunctions(): Readonly<Record<string, unknown>> {
  let steps = 0;
  const take = (count: number) => {
    steps += count;
    if (steps > maxSteps) throw new Error(`the template takes more than ${maxSteps} steps`);
  };
  return {
    [stepName]: (value: unknown) => {
      take(1);
      return value ?? null;
    },
    [sizeName]: (value: unknown) => {
      checkText(value);
      if (Array.isArray(value) && value.length > maxItems)
        throw new Error(`the template builds a list of more than ${maxItems} items`);
      return null;
    },
    [rangeName]: (first: number, second?: number, step = 1) => {
      const [start, stop] = second === undefined ? [0, first] : [first, second];
      const count = Math.ceil((stop - start) / step);
      if (step === 0 || !(count <= maxRange))
        throw new Error(`range() returns more than ${maxRange} numbers`);
      take(Math.max(0, count));
      return Array.from({ length: Math.max(0, count) }, (_, i) => start + i * step);
    },
  };
}

/** Throws for a string that is longer than any chat. */
export function checkText(text: unknown): void {
  if (typeof text === "string" && text.length > maxText)
    throw new Error(`the template builds a string of more than ${maxText} characters`);
}

function visit(value: unknown): void {
  if (isNode(value)) addLimits(value);
  else if (Array.isArray(value)) value.forEach(visit);
  else if (value instanceof Map) for (const pair of value) pair.forEach(visit);
}

export const isNode = (value: unknown): value is TemplateNode =>
  typeof value === "object" && value !== null && typeof (value as TemplateNode).type === "string";

export const call = (name: string, args: readonly unknown[]): TemplateNode => ({
  type: "CallExpression",
  callee: { type: "Identifier", value: name },
  args,
});

const yes: TemplateNode = { type: "Identifier", value: "true" };

function sizeOfSet(node: TemplateNode): TemplateNode[] {
  const assigned = node["assignee"];
  return node.type === "Set" && isNode(assigned) && assigned.type !== "TupleLiteral"
    ? [call(sizeName, [assigned])]
    : [];
}

function sizes(node: TemplateNode): TemplateNode[] {
  if (node.type !== "Macro") return [];
  return (node["args"] as TemplateNode[]).map((arg) => call(sizeName, [arg["key"] ?? arg]));
}
