import * as tf from "@tensorflow/tfjs-core";

/**
 * Σ over N rows of the negative log-likelihood of the target, in nats. N scored positions, V vocabulary.
 *
 * The value is `log Σ exp(logits) − logits[target]` with the row's maximum subtracted first. The sum of exponentials is
 * read off the softmax, whose largest entry is its inverse: on wasm `exp` costs seven times the fused softmax.
 * The gradient is `softmax − one-hot`, the ones subtracted in place by a scatter; no one-hot matrix exists.
 *
 * @param logits float32 [N, V], N ≥ 1
 * @param targets int32 [N], each in [0, V); not checked, an id outside gives an unspecified value
 * @returns scalar; differentiable in `logits` once. Disposing is the caller's. NaN or Inf in, NaN or Inf out.
 */
export function crossEntropySum(logits: tf.Tensor2D, targets: tf.Tensor1D): tf.Scalar {
  const loss = tf.customGrad((x, save) => {
    const scores = x as tf.Tensor2D;
    const rows = tf.range(0, scores.shape[0], 1, "int32");
    const at = tf.stack([rows, targets], 1) as tf.Tensor2D;
    const probabilities = tf.softmax(scores);
    const logSum = tf.sub(tf.max(scores, 1), tf.log(tf.max(probabilities, 1)));
    const value = tf.sum(tf.sub(logSum, tf.gatherND(scores, at))) as tf.Scalar;
    (save as (tensors: tf.Tensor[]) => void)([probabilities, at]);
    return {
      value,
      gradFunc: (dy: tf.Tensor, saved: tf.Tensor[]) => {
        const [p, index] = saved as [tf.Tensor2D, tf.Tensor2D];
        const overTarget = tf.sub(tf.gatherND(p, index), 1);
        return tf.mul(tf.tensorScatterUpdate(p, index, overTarget), dy);
      },
    };
  });
  return loss(logits);
}
