import * as tf from "@tensorflow/tfjs-core";
import { differentiable } from "./differentiable.ts";

/** a + b, of one shape. */
export function sum(a: tf.Tensor2D, b: tf.Tensor2D): tf.Tensor2D {
  return differentiable([a, b], () => ({
    value: tf.add<tf.Tensor2D>(a, b),
    // Two tensors: the tape disposes each by itself.
    backward: (gradient) => [tf.clone(gradient), tf.clone(gradient)],
  }));
}

/** x · factor. */
export function scaled(x: tf.Tensor2D, factor: number): tf.Tensor2D {
  return differentiable([x], () => ({
    value: tf.mul<tf.Tensor2D>(x, factor),
    backward: (gradient) => [tf.mul(gradient, factor)],
  }));
}
