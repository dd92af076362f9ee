import { fail } from "./errors.ts";
import { checkNamespaceName } from "./globals.ts";
import { nodesIn, type Target } from "./nodes.ts";
import type { Variables } from "./run.ts";
import { listOf } from "./sequences.ts";
import { Dict, Namespace, Tuple, type Value } from "./values.ts";

/** Assigns a value to a target: a name, an attribute of a namespace, or a tuple of targets. */
export function assignTo(target: Target, value: Value, variables: Variables): void {
  if (target.type === "Name") return variables.set(target.name, value);
  if (target.type === "NamespaceName")
    return assignAttribute(variables.get(target.name), target.attribute, value);
  const items = listOf(value);
  const { length } = target.items;
  if (items.length !== length) fail(`expected ${length} values to unpack, got ${items.length}`);
  target.items.forEach((item, i) => assignTo(item, items[i]!, variables));
}

function assignAttribute(object: Value | undefined, attribute: string, value: Value): void {
  if (object instanceof Dict) return object.set(attribute, value);
  if (!(object instanceof Namespace)) return fail("cannot assign attribute on non-namespace object");
  checkNamespaceName(attribute);
  object.attributes.set(attribute, value);
}

/** Checks that all objects whose attributes are assigned are namespaces. */
export function checkNamespaces(target: Target, variables: Variables): void {
  for (const node of nodesIn(target))
    if (node.type === "NamespaceName" && !(variables.get(node.name) instanceof Namespace))
      fail("cannot assign attribute on non-namespace object");
}

/** The value of a target after its assignment: tuples instead of other iterables. */
export function assignedValue(target: Target, value: Value): Value {
  if (target.type !== "Tuple") return value;
  const items = listOf(value);
  return new Tuple(target.items.map((item, i) => assignedValue(item, items[i]!)));
}
