import * as tf from "@tensorflow/tfjs-core";
import { differentiable } from "./differentiable.ts";

/**
 * Extracts a part of the output of a fused linear map. x [N, B·W], as B blocks of W columns → columns `start` to
 * `start + size` of each block, [N, B·size].
 */
export function columns(x: tf.Tensor2D, start: number, size: number, blocks = 1): tf.Tensor2D {
  const [rows, all] = x.shape;
  const width = all / blocks;
  return differentiable([x], () => ({
    value: tf.tidy(() => {
      const part = tf.slice(tf.reshape(x, [rows * blocks, width]), [0, start], [-1, size]);
      return tf.reshape(part, [rows, blocks * size]);
    }),
    backward: (gradient) => {
      const inBlocks = tf.reshape(gradient, [rows * blocks, size]);
      const around: [number, number] = [start, width - start - size];
      return [tf.reshape(tf.pad(inBlocks, [[0, 0], around]), [rows, all])];
    },
  }));
}
