import type * as tf from "@tensorflow/tfjs-core";
import type { NamedWeight } from "@periodic-eval/core/tfjs";

/** Changes a model's variables by their gradients. Deterministic: the same calls give the same bits. */
export interface Optimizer {
  /** Completed updates. */
  readonly steps: number;
  /**
   * One update. Gradients are by variable name; a variable without one is left as it is. Each is multiplied by
   * `gradientScale` (default 1) first: clipping and averaging cost no pass of their own. The caller disposes them.
   */
  apply(gradients: Readonly<Record<string, tf.Tensor>>, learningRate: number, gradientScale?: number): void;
  /** Everything that the next update depends on, `steps` apart. */
  slots(): readonly NamedWeight[];
  /** Puts back what `steps` and `slots()` gave: values by slot name, row-major. Throws where one is missing or of another size. */
  restore(steps: number, values: ReadonlyMap<string, Float32Array>): void;
  dispose(): void;
}
