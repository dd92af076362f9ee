import { fail } from "./errors.ts";
import { identifierOf, type Frame } from "./symbols.ts";
import { checkNamespaceName } from "./globals.ts";
import { nodesIn, type Target } from "./nodes.ts";
import type { Run } from "./run.ts";
import { listOf } from "./sequences.ts";
import { Dict, Namespace, Tuple, type Value } from "./values.ts";

type Assign = (run: Run, value: Value) => void;

/** Returns a function that assigns a value to a target: a name, an attribute of a namespace, or a tuple of targets. */
export function compileTarget(target: Target, frame: Frame): Assign {
  if (target.type === "Tuple") {
    const parts = target.items.map((item) => compileTarget(item, frame));
    return (run, value) => {
      const items = listOf(value);
      if (items.length !== parts.length)
        fail(`expected ${parts.length} values to unpack, got ${items.length}`);
      parts.forEach((assign, i) => assign(run, items[i]!));
    };
  }
  const identifier = identifierOf(frame, target.name);
  if (target.type === "NamespaceName")
    return ({ variables }, value) => assignAttribute(variables.get(identifier), target.attribute, value);
  const { name } = target;
  return ({ variables, context }, value) => {
    variables.set(identifier, value);
    if (frame.isTop) context.assigned.set(name, value);
  };
}

function assignAttribute(object: Value | undefined, attribute: string, value: Value): void {
  if (object instanceof Dict) return object.set(attribute, value);
  if (!(object instanceof Namespace)) return fail("cannot assign attribute on non-namespace object");
  checkNamespaceName(attribute);
  object.attributes.set(attribute, value);
}

/** Returns a check that all objects whose attributes are assigned are namespaces. */
export function compileNamespaceCheck(target: Target, frame: Frame): (run: Run) => void {
  const identifiers = [...nodesIn(target)].flatMap((node) =>
    node.type === "NamespaceName" ? [identifierOf(frame, node.name)] : [],
  );
  return ({ variables }) => {
    for (const identifier of identifiers)
      if (!(variables.get(identifier) instanceof Namespace))
        fail("cannot assign attribute on non-namespace object");
  };
}

/** The value of a target after its assignment: tuples instead of other iterables. */
export function assignedValue(target: Target, value: Value): Value {
  if (target.type !== "Tuple") return value;
  const items = listOf(value);
  return new Tuple(target.items.map((item, i) => assignedValue(item, items[i]!)));
}
