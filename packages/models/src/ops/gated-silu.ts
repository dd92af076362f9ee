import * as tf from "@tensorflow/tfjs-core";
import { differentiable } from "./differentiable.ts";

/** gate, up [N, F] → silu(gate) · up [N, F], silu(g) = g · sigmoid(g) (SwiGLU, Shazeer 2020). */
export function gatedSilu(gate: tf.Tensor2D, up: tf.Tensor2D): tf.Tensor2D {
  return differentiable([gate, up], (keep) => {
    const sigmoid = tf.sigmoid(gate);
    const silu = tf.mul(gate, sigmoid);
    keep([sigmoid, silu, up]);
    return {
      value: tf.mul<tf.Tensor2D>(silu, up),
      backward: (gradient, kept) => {
        const [sigmoid, silu, up] = kept as [tf.Tensor2D, tf.Tensor2D, tf.Tensor2D];
        // silu' = s + g·s·(1 − s) = s + silu − silu·s
        const slope = tf.sub(tf.add(sigmoid, silu), tf.mul(silu, sigmoid));
        return [tf.mul(tf.mul(gradient, up), slope), tf.mul(gradient, silu)];
      },
    };
  });
}
