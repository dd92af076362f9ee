import * as tf from "@tensorflow/tfjs-core";
import { differentiable } from "./differentiable.ts";
import { sumOfRows } from "./mat-mul.ts";

/** x [N, D], weight [D] → x / √(mean(x²) + epsilon) · weight [N, D] (Zhang and Sennrich 2019). */
export function rmsNorm(x: tf.Tensor2D, weight: tf.Tensor1D, epsilon: number): tf.Tensor2D {
  return differentiable([x, weight], (keep) => {
    const inverse = tf.rsqrt(tf.add(tf.mean(tf.square(x), -1, true), epsilon));
    const normed = tf.mul(x, inverse);
    keep([normed, inverse, weight]);
    return {
      value: tf.mul<tf.Tensor2D>(normed, weight),
      backward: (gradient, kept) => {
        const [normed, inverse, weight] = kept as [tf.Tensor2D, tf.Tensor2D, tf.Tensor1D];
        const ofNormed = tf.mul(gradient, weight);
        const along = tf.mean(tf.mul(ofNormed, normed), -1, true);
        const ofX = tf.mul(inverse, tf.sub(ofNormed, tf.mul(normed, along)));
        return [ofX, sumOfRows(tf.mul(gradient, normed))];
      },
    };
  });
}
