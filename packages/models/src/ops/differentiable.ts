import * as tf from "@tensorflow/tfjs-core";

/** Holds tensors until the gradient has been taken; does nothing where none is being taken. */
export type Keep = (tensors: tf.Tensor[]) => void;

export interface Differentiable<Out extends tf.Tensor> {
  readonly value: Out;
  /** From the gradient of the output and the kept tensors, in order, to one gradient for each input. */
  readonly backward: (gradient: Out, kept: tf.Tensor[]) => tf.Tensor[];
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
  const run = tf.customGrad<Out>((...args) => {
    const { value, backward } = forward(args.at(-1) as Keep);
    return { value, gradFunc: (gradient, kept) => tf.tidy(() => backward(gradient, kept)) };
  });
  return run(...inputs);
}

/** Whether gradients are being recorded. */
export const isDifferentiated = (): boolean => tf.engine().isTapeOn();
