import * as tf from "@tensorflow/tfjs-core";
import type { NamedWeight } from "./causal-lm.ts";

/** Anything that can show its state: accumulators, step counters. */
export interface HasSlots {
  slots(): readonly NamedWeight[];
  /** Completed updates. */
  readonly steps?: number;
}

export interface OptimizerState {
  /** Live tensors: the reader must not dispose them. */
  readonly slots: readonly NamedWeight[];
  /** Settings and counters that are plain numbers: `learningRate`, `iterations_`. */
  readonly numbers: readonly (readonly [name: string, value: number])[];
  /** False where nothing that could hold slots was found: they may be in private fields, a Map, or a closure. */
  readonly isWhole: boolean;
}

/**
 * What an optimizer carries from step to step. A `tf.Optimizer` is read by its fields, whatever its class (Adam keeps two
 * lists of accumulators and two tensors, momentum one list and one tensor): `getWeights()` leaks a tensor a call, leaves
 * out Adam's powers of beta, and throws for Adamax.
 */
export function optimizerState(optimizer: tf.Optimizer | HasSlots): OptimizerState {
  if ("slots" in optimizer) {
    const { steps } = optimizer;
    return {
      slots: optimizer.slots(),
      numbers: steps === undefined ? [] : [["steps", steps]],
      isWhole: true,
    };
  }
  const slots: NamedWeight[] = [];
  const numbers: [string, number][] = [];
  let isWhole = false;
  for (const [field, value] of Object.entries(optimizer as object) as [string, unknown][]) {
    if (typeof value === "number") numbers.push([field, value]);
    else if (value instanceof tf.Tensor) {
      isWhole = true;
      slots.push({ name: field, read: () => value });
    } else if (Array.isArray(value) && value.every(isAccumulator)) {
      // Empty before the first step: RMSProp and Adagrad make them then.
      isWhole = true;
      for (const entry of value) {
        slots.push({ name: `${field}/${entry.originalName}`, read: () => entry.variable });
      }
    }
  }
  return { slots, numbers, isWhole };
}

interface Accumulator {
  readonly originalName: string;
  readonly variable: tf.Variable;
}

const isAccumulator = (value: unknown): value is Accumulator =>
  typeof value === "object" && value !== null && "variable" in value && value.variable instanceof tf.Tensor;
