import * as tf from "@tensorflow/tfjs-core";
import { differentiable } from "./differentiable.ts";

/**
 * Rows by index: table [R, D], indices int32 [N] → [N, D]. The gradient adds up what falls on one row. An embedding is
 * this with token ids; its row `unmoved` gets no gradient. `gatherND` and not `gather`: on wasm it is 50 times as fast.
 */
export function rowsAt(table: tf.Tensor2D, indices: tf.Tensor1D, unmoved: number | null = null): tf.Tensor2D {
  return differentiable([table], (keep) => {
    const at = tf.reshape(indices, [-1, 1]);
    keep([at]);
    return {
      value: tf.gatherND(table, at) as tf.Tensor2D,
      backward(gradient, kept) {
        const at = kept[0] as tf.Tensor2D;
        const moving =
          unmoved === null ? gradient : tf.mul(gradient, tf.cast(tf.notEqual(at, unmoved), "float32"));
        return [tf.scatterND(at, moving, table.shape)];
      },
    };
  });
}
