import * as tf from "@tensorflow/tfjs-core";
import type { NamedWeight } from "../causal-lm/causal-lm.ts";

/** An optimizer that lists its state: accumulators and step counters. */
export interface HasSlots {
  slots(): readonly NamedWeight[];
  /** Number of completed updates. */
  readonly steps?: number;
}

export interface OptimizerState {
  /** Live tensors. The reader must not dispose them. */
  readonly slots: readonly NamedWeight[];
  /** Numeric settings and counters: `learningRate`, `iterations_`. */
  readonly numbers: readonly (readonly [name: string, value: number])[];
  /** False if no field was found that could hold slots: they may be in private fields, a Map or a closure. */
  readonly isComplete: boolean;
}

/**
 * Returns the state that an optimizer carries from step to step. Reads the fields of any `tf.Optimizer` (Adam has two lists of
 * accumulators and two tensors, momentum one list and one tensor), because `getWeights()` leaks a tensor per call, omits Adam's
 * powers of beta and throws for Adamax.
 */
export function optimizerState(optimizer: tf.Optimizer | HasSlots): OptimizerState {
  if ("slots" in optimizer) {
    return { slots: optimizer.slots(), numbers: optimizerNumbers(optimizer), isComplete: true };
  }
  const slots: NamedWeight[] = [];
  let isComplete = false;
  for (const [field, value] of Object.entries(optimizer as object) as [string, unknown][]) {
    if (value instanceof tf.Tensor) {
      isComplete = true;
      slots.push({ name: field, read: () => value });
    } else if (Array.isArray(value) && value.every(isAccumulator)) {
      // Empty before the first step, in which RMSProp and Adagrad create their accumulators.
      isComplete = true;
      for (const entry of value) {
        slots.push({ name: `${field}/${entry.originalName}`, read: () => entry.variable });
      }
    }
  }
  return { slots, numbers: optimizerNumbers(optimizer), isComplete };
}

/** Returns the numeric settings and counters of an optimizer. */
export function optimizerNumbers(optimizer: tf.Optimizer | HasSlots): OptimizerState["numbers"] {
  if ("slots" in optimizer) return optimizer.steps === undefined ? [] : [["steps", optimizer.steps]];
  return Object.entries(optimizer as object).filter(
    (entry): entry is [string, number] => typeof entry[1] === "number",
  );
}

interface Accumulator {
  readonly originalName: string;
  readonly variable: tf.Variable;
}

const isAccumulator = (value: unknown): value is Accumulator =>
  typeof value === "object" && value !== null && "variable" in value && value.variable instanceof tf.Tensor;
