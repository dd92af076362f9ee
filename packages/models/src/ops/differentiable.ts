import * as tf from "@tensorflow/tfjs-core";

/** Saves tensors until the gradient has been computed; does nothing without a tape. */
export type Save = (tensors: tf.Tensor[]) => void;

export interface Differentiable<Out extends tf.Tensor> {
  readonly value: Out;
  /**
   * Returns one gradient per input from the gradient of the output and the saved tensors, in order. For an input whose
   * gradient is expensive and not needed it may return null.
   */
  readonly backward: (gradient: Out, saved: tf.Tensor[]) => (tf.Tensor | null)[];
}

/**
 * Runs an operation with a handwritten backward pass. `@tensorflow/tfjs-core` alone registers no gradients, and the
 * registered ones use slow kernels on wasm, so every operation of a model goes through this function.
 *
 * `backward` may use only the saved tensors: others can be disposed before it runs. Both passes dispose everything except
 * their results.
 */
export function differentiable<Out extends tf.Tensor>(
  inputs: readonly tf.Tensor[],
  forward: (save: Save) => Differentiable<Out>,
): Out {
  // Without a tape the bookkeeping is skipped, which is a third of the cost of a small operation.
  if (!isDifferentiated()) return tf.tidy(() => forward(() => {}).value);
  const isInput = inputs.map(isWanted);
  const hasGradient = isInput.includes(true);
  const run = tf.customGrad<Out>((...args) => {
    const { value, backward } = forward(hasGradient ? (args.at(-1) as Save) : () => {});
    const gradFunc = (gradient: Out, saved: tf.Tensor[]) =>
      tf.tidy(() => backward(gradient, saved).filter((_, i) => isInput[i]) as tf.Tensor[]);
    return { value, gradFunc };
  });
  const value = run(...inputs.filter((_, i) => isInput[i]));
  if (hasGradient) wanted?.add(value);
  return value;
}

/** Tensors whose gradients are wanted, and tensors computed from them; null if all are wanted. */
let wanted: WeakSet<tf.Tensor> | null = null;

/** Runs a pass that computes only the gradients of `variables`, and keeps only what these need. */
export function gradientsOf<T>(variables: readonly tf.Tensor[], pass: () => T): T {
  const before = wanted;
  wanted = new WeakSet<tf.Tensor>(variables);
  try {
    return pass();
  } finally {
    wanted = before;
  }
}

/** Whether a gradient of a tensor is wanted. Operations ask this in their forward pass. */
export const isWanted = (tensor: tf.Tensor): boolean => wanted === null || wanted.has(tensor);

/** Whether a tape records operations for gradients. */
export const isDifferentiated = (): boolean => tf.engine().isTapeOn();
