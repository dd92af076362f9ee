import * as tf from "@tensorflow/tfjs-core";

/** Holds tensors until the gradient has been taken; does nothing where none is being taken. */
export type Keep = (tensors: tf.Tensor[]) => void;

export interface Differentiable<Out extends tf.Tensor> {
  readonly value: Out;
  /**
   * From the gradient of the output and the kept tensors, in order, to one gradient for each input; null, where that is
   * dear to compute, for an input that is not wanted.
   */
  readonly backward: (gradient: Out, kept: tf.Tensor[]) => (tf.Tensor | null)[];
}

/**
 * An operation with a backward pass written by hand. `@tensorflow/tfjs-core` by itself registers no gradients, and the
 * registered ones take the slow kernels on wasm; so everything that a model computes goes through here.
 *
 * `backward` may use the kept tensors only: others can be disposed before it runs. Everything that either pass leaves
 * behind besides its results is disposed.
 */
export function differentiable<Out extends tf.Tensor>(
  inputs: readonly tf.Tensor[],
  forward: (keep: Keep) => Differentiable<Out>,
): Out {
  // A pass that nobody differentiates is spared the tape: a third of what a small operation costs.
  if (!isDifferentiated()) return tf.tidy(() => forward(() => {}).value);
  const isInput = inputs.map(isWanted);
  const leadsBack = isInput.includes(true);
  const run = tf.customGrad<Out>((...args) => {
    const { value, backward } = forward(leadsBack ? (args.at(-1) as Keep) : () => {});
    const gradFunc = (gradient: Out, kept: tf.Tensor[]) =>
      tf.tidy(() => backward(gradient, kept).filter((_, i) => isInput[i]) as tf.Tensor[]);
    return { value, gradFunc };
  });
  const value = run(...inputs.filter((_, i) => isInput[i]));
  if (leadsBack) wanted?.add(value);
  return value;
}

/** What a gradient is wanted of, and what was computed from it; null where it is of everything. */
let wanted: WeakSet<tf.Tensor> | null = null;

/**
 * Runs a pass of which nobody wants other gradients than those of `variables`: none of others are computed, and what
 * only they would need is not kept.
 */
export function gradientsOf<T>(variables: readonly tf.Tensor[], pass: () => T): T {
  const before = wanted;
  wanted = new WeakSet<tf.Tensor>(variables);
  try {
    return pass();
  } finally {
    wanted = before;
  }
}

/** Whether a gradient of this is wanted; for an operation to ask while it runs forward. */
export const isWanted = (tensor: tf.Tensor): boolean => wanted === null || wanted.has(tensor);

/** Whether gradients are being recorded. */
export const isDifferentiated = (): boolean => tf.engine().isTapeOn();
