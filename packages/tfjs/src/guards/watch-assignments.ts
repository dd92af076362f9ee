import * as tf from "@tensorflow/tfjs-core";
import type { NamedWeight } from "../causal-lm/causal-lm.ts";

/**
 * Calls `onChange` inside every call that assigns or disposes one of these weights, if it is a variable. Optimizers, and nearly
 * all other code, change weights only so; a write into a weight's buffer goes unnoticed.
 *
 * @returns A function that ends the watching.
 */
export function watchAssignments(
  weights: readonly NamedWeight[],
  onChange: (what: string) => void,
): () => void {
  const ends: (() => void)[] = [];
  const names = new Map<unknown, string>();
  for (const { name, read } of weights) {
    const variable = read();
    if (!(variable instanceof tf.Variable)) continue;
    names.set(variable, name);
    const assigned = `${name} assigned`;
    ends.push(watchMethod(variable, "assign", () => onChange(assigned)));
  }
  // Not `dispose` of the variables, which `tf.disposeVariables` does not call.
  const watchDisposal = (variable: unknown) => {
    const name = names.get(variable);
    if (name !== undefined) onChange(`${name} disposed`);
  };
  if (names.size > 0) ends.push(watchMethod(tf.engine(), "disposeVariable", watchDisposal));
  return () => ends.forEach((end) => end());
}

/**
 * Calls `onChange` inside every call that switches TensorFlow.js to another backend, on which training would compute other numbers.
 *
 * @returns A function that ends the watching.
 */
export function watchBackend(onChange: (what: string) => void): () => void {
  const engine = tf.engine();
  // TensorFlow.js never chooses a backend of negative priority: it traces graphs, and is left at once.
  const computes = (name: string) => (engine.registryFactory[name]?.priority ?? 0) >= 0;
  return watchMethod(engine, "setBackend", (given) => {
    const [before, name] = [tf.getBackend(), String(given)];
    if (name !== before && computes(name) && computes(before)) onChange(`backend=${name}`);
  });
}

/** Replaces a method of one object, whose class stays as it is. */
function watchMethod<N extends string>(
  object: Record<N, (given: never) => unknown>,
  name: N,
  onCall: (given: unknown) => void,
): () => void {
  const before = Object.getOwnPropertyDescriptor(object, name);
  const method = object[name];
  let isWatching = true;
  const watched = (given: never) => {
    if (isWatching) onCall(given);
    return method.call(object, given);
  };
  Object.defineProperty(object, name, { value: watched, configurable: true, writable: true });
  return () => {
    isWatching = false;
    // Another watcher may have replaced it since.
    if (object[name] !== watched) return;
    if (before === undefined) Reflect.deleteProperty(object, name);
    else Object.defineProperty(object, name, before);
  };
}
