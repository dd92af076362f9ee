import { fail } from "./errors.ts";
import { checkNamespaceName } from "./globals.ts";
import type { Scope, Variables } from "./run.ts";
import { listOf } from "./sequences.ts";
import { Dict, Namespace, Tuple, type Value } from "./values.ts";

/** The target of an assignment: a variable, an attribute of a namespace, or a tuple of targets. */
export type Target =
  | { readonly name: string; readonly attribute?: string }
  | { readonly items: readonly Target[] };

/** Assigns a value to a target. */
export function assignTo(target: Target, value: Value, variables: Variables): undefined {
  if ("items" in target) {
    const items = listOf(value);
    const { length } = target.items;
    if (items.length !== length) fail(`expected ${length} values to unpack, got ${items.length}`);
    target.items.forEach((item, i) => assignTo(item, items[i]!, variables));
  } else if (target.attribute === undefined) variables.set(target.name, value);
  else assignAttribute(variables.get(target.name), target.attribute, value);
}

function assignAttribute(object: Value | undefined, attribute: string, value: Value): void {
  if (object instanceof Dict) return object.set(attribute, value);
  if (!(object instanceof Namespace)) return fail("cannot assign attribute on non-namespace object");
  checkNamespaceName(attribute);
  object.attributes.set(attribute, value);
}

/** Checks that all objects whose attributes are assigned are namespaces. */
export function checkNamespaces(target: Target, variables: Variables): void {
  if ("items" in target) for (const item of target.items) checkNamespaces(item, variables);
  else if (target.attribute !== undefined && !(variables.get(target.name) instanceof Namespace))
    fail("cannot assign attribute on non-namespace object");
}

/** The value of a target after its assignment: tuples instead of other iterables. */
export function assignedValue(target: Target, value: Value): Value {
  if (!("items" in target)) return value;
  const items = listOf(value);
  return new Tuple(target.items.map((item, i) => assignedValue(item, items[i]!)));
}

/** Notes the names of a target in a scope: as parameters, or as variables that it assigns. */
export function noteTarget(target: Target, scope: Scope, isParameter: boolean): void {
  if ("items" in target) for (const item of target.items) noteTarget(item, scope, isParameter);
  else if (target.attribute !== undefined) scope.load(target.name);
  else scope.store(target.name, isParameter);
}
