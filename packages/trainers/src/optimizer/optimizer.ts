import type * as tf from "@tensorflow/tfjs-core";
import type { NamedWeight } from "@periodic-eval/tfjs";

/** Updates a model's variables from their gradients. Deterministic: the same calls give the same bits. */
export interface Optimizer {
  /** Completed updates. */
  readonly steps: number;
  /**
   * Applies one update. `gradients` are by variable name; a variable without a gradient is unchanged. Each gradient is first
   * multiplied by `gradientScale` (default 1), so that clipping and averaging need no pass of their own. The caller disposes
   * the gradients.
   */
  apply(gradients: Readonly<Record<string, tf.Tensor>>, learningRate: number, gradientScale?: number): void;
  /** Returns the whole state of the optimizer except `steps`. */
  slots(): readonly NamedWeight[];
  /**
   * Restores `steps` and the values of `slots()`, by slot name and row-major. Throws if a slot is missing or has another size.
   */
  restore(steps: number, values: ReadonlyMap<string, Float32Array>): void;
  dispose(): void;
}
