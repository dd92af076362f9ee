import * as tf from "@tensorflow/tfjs-core";
import { differentiable } from "./differentiable.ts";
import { fastRandom } from "./fast-random.ts";

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

/** Draws a float32 mask: 0 with probability `rate`, else 1 / (1 − rate). */
export function dropoutMask(
  shape: readonly [number, number],
  rate: number,
  random: () => number,
): tf.Tensor2D {
  const draw = fastRandom(random);
  const scale = 1 / (1 - rate);
  const values = Float32Array.from({ length: shape[0] * shape[1] }, () => (draw() < rate ? 0 : scale));
  return tf.tensor2d(values, [...shape]);
}

/** Multiplies x [N, D] by a mask of `dropoutMask`. */
export function dropout(x: tf.Tensor2D, mask: tf.Tensor2D): tf.Tensor2D {
  return differentiable([x], (save) => {
    save([mask]);
    return {
      value: tf.mul<tf.Tensor2D>(x, mask),
      backward: (gradient, saved) => [tf.mul(gradient, saved[0]!)],
    };
  });
}

/** Computes cap · tanh(x / cap), which limits values to ±cap and barely changes small ones (Gemma 2). x [N, D] → [N, D]. */
export function softCap(x: tf.Tensor2D, cap: number): tf.Tensor2D {
  return differentiable([x], (save) => {
    const bounded = tanh(tf.div(x, cap));
    save([bounded]);
    return {
      value: tf.mul<tf.Tensor2D>(bounded, cap),
      backward: (gradient, saved) => [tf.mul(gradient, tanhSlope(saved[0]!))],
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
