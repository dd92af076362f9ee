import * as tf from "@tensorflow/tfjs-core";
import { differentiable } from "./differentiable.ts";

/** Adds two tensors of the same shape. */
export function sum(a: tf.Tensor2D, b: tf.Tensor2D): tf.Tensor2D {
  return differentiable([a, b], () => ({
    value: tf.add<tf.Tensor2D>(a, b),
    // Clones, because the tape disposes each gradient separately.
    backward: (gradient) => [tf.clone(gradient), tf.clone(gradient)],
  }));
}

/** Multiplies x by a constant. */
export function scaled(x: tf.Tensor2D, factor: number): tf.Tensor2D {
  return differentiable([x], () => ({
    value: tf.mul<tf.Tensor2D>(x, factor),
    backward: (gradient) => [tf.mul(gradient, factor)],
  }));
}
