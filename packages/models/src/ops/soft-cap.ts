import * as tf from "@tensorflow/tfjs-core";
import { differentiable } from "./differentiable.ts";

/** Computes cap · tanh(x / cap), which limits values to ±cap and barely changes small ones (Gemma 2). x [N, D] → [N, D]. */
export function softCap(x: tf.Tensor2D, cap: number): tf.Tensor2D {
  return differentiable([x], (keep) => {
    const bounded = tanh(tf.div(x, cap));
    keep([bounded]);
    return {
      value: tf.mul<tf.Tensor2D>(bounded, cap),
      backward: (gradient, kept) => [tf.mul(gradient, tanhSlope(kept[0]!))],
    };
  });
}

/** Computes tanh as 2σ(2x) − 1, because on wasm `tanh` takes 13 times as long as `sigmoid`. The error is at most 1e-7. */
export function tanh<T extends tf.Tensor>(x: T): T {
  return tf.tidy(() => tf.sub<T>(tf.mul(tf.sigmoid(tf.mul(x, 2)), 2), 1));
}

/** Returns the derivative of tanh at the point where tanh is `value`. */
export function tanhSlope<T extends tf.Tensor>(value: T): T {
  return tf.tidy(() => tf.sub<T>(1, tf.square(value)));
}
