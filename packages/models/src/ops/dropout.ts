import * as tf from "@tensorflow/tfjs-core";
import { differentiable } from "./differentiable.ts";
import { fastRandom } from "./fast-random.ts";

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
  return differentiable([x], (keep) => {
    keep([mask]);
    return {
      value: tf.mul<tf.Tensor2D>(x, mask),
      backward: (gradient, kept) => [tf.mul(gradient, kept[0]!)],
    };
  });
}
