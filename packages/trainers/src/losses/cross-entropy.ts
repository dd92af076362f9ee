import * as tf from "@tensorflow/tfjs-core";

/** Σ over N rows of `crossEntropy`, differentiable in `logits` once. */
export const crossEntropySum = (logits: tf.Tensor2D, targets: tf.Tensor1D): tf.Scalar =>
  tf.tidy(() => total(crossEntropy(logits, targets)));

/** Σ of N losses, differentiable. */
export function total(losses: tf.Tensor1D): tf.Scalar {
  const count = losses.size;
  const sum = tf.customGrad<tf.Scalar>((x) => ({
    value: tf.sum<tf.Scalar>(x as tf.Tensor),
    gradFunc: (above: tf.Tensor) => tf.mul(tf.ones([count]), above),
  }));
  return sum(losses);
}

/**
 * The negative log-likelihood of the target of each of N rows, in nats. N scored positions, V vocabulary.
 *
 * The value is `log Σ exp(logits) − logits[target]` with the row's maximum subtracted first. The sum of exponentials is
 * read off the softmax, whose largest entry is its inverse: on wasm `exp` costs seven times the fused softmax.
 * The gradient is `softmax − one-hot`, the ones subtracted in place by a scatter; no one-hot matrix exists.
 *
 * @param logits float32 [N, V], N ≥ 1
 * @param targets int32 [N], each in [0, V); not checked, an id outside gives an unspecified value
 * @returns [N]; differentiable in `logits` once. Disposing is the caller's. NaN or Inf in, NaN or Inf out.
 */
export function crossEntropy(logits: tf.Tensor2D, targets: tf.Tensor1D): tf.Tensor1D {
  const loss = tf.customGrad((x, save) => {
    const scores = x as tf.Tensor2D;
    const rows = tf.range(0, scores.shape[0], 1, "int32");
    const at = tf.stack([rows, targets], 1) as tf.Tensor2D;
    const probabilities = tf.softmax(scores);
    const logSum = tf.sub(tf.max(scores, 1), tf.log(tf.max(probabilities, 1)));
    const value = tf.sub<tf.Tensor1D>(logSum, tf.gatherND(scores, at));
    (save as (tensors: tf.Tensor[]) => void)([probabilities, at]);
    return {
      value,
      gradFunc: (dy: tf.Tensor, saved: tf.Tensor[]) => {
        const [p, index] = saved as [tf.Tensor2D, tf.Tensor2D];
        const overTarget = tf.sub(tf.gatherND(p, index), 1);
        return tf.mul(tf.tensorScatterUpdate(p, index, overTarget), tf.reshape(dy, [-1, 1]));
      },
    };
  });
  return loss(logits);
}
