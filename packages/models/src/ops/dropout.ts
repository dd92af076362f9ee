import * as tf from "@tensorflow/tfjs-core";
import { differentiable } from "./differentiable.ts";
import { fastRandom } from "./fast-random.ts";

/** Sets each value to 0 with probability `rate`, scales the others by 1 / (1 − rate). x [N, D] → [N, D]. */
export function dropout(x: tf.Tensor2D, rate: number, random: () => number): tf.Tensor2D {
  if (rate === 0) return x;
  return differentiable([x], (keep) => {
    const draw = fastRandom(random);
    const scale = 1 / (1 - rate);
    const mask = tf.tensor(
      Float32Array.from({ length: x.size }, () => (draw() < rate ? 0 : scale)),
      x.shape,
    );
    keep([mask]);
    return {
      value: tf.mul<tf.Tensor2D>(x, mask),
      backward: (gradient, kept) => [tf.mul(gradient, kept[0]!)],
    };
  });
}
