import * as tf from "@tensorflow/tfjs-core";
import { targetLosses } from "@periodic-eval/tfjs";

/** Returns Σ over N rows of `crossEntropy`, once differentiable in `logits`. */
export const crossEntropySum = (logits: tf.Tensor2D, targets: tf.Tensor1D): tf.Scalar =>
  tf.tidy(() => total(crossEntropy(logits, targets)));

/** Returns Σ of N losses, differentiable. */
export function total(losses: tf.Tensor1D): tf.Scalar {
  const count = losses.size;
  const sum = tf.customGrad<tf.Scalar>((x) => ({
    value: tf.sum<tf.Scalar>(x as tf.Tensor),
    gradFunc: (above: tf.Tensor) => tf.mul(tf.ones([count]), above),
  }));
  return sum(losses);
}

/**
 * Returns the negative log-likelihood of the target of each row, in nats. N scored positions, V vocabulary. The gradient is
 * `softmax − one-hot` and is only computed when one is taken.
 *
 * @param logits float32 [N, V], N ≥ 1.
 * @param targets int32 [N], each in [0, V); not checked: an id outside gives an unspecified value.
 * @returns [N], once differentiable in `logits`. The caller disposes it. NaN or Inf in, NaN or Inf out.
 */
export function crossEntropy(logits: tf.Tensor2D, targets: tf.Tensor1D): tf.Tensor1D {
  if (!tf.engine().isTapeOn()) return tf.tidy(() => targetLosses(logits, targets).losses);
  const loss = tf.customGrad((x, save) => {
    const { losses, gradient } = targetLosses(x as tf.Tensor2D, targets);
    (save as (tensors: tf.Tensor[]) => void)([gradient()]);
    return {
      value: losses,
      gradFunc: (dy: tf.Tensor, [ofLogits]: tf.Tensor[]) => tf.mul(ofLogits!, tf.reshape(dy, [-1, 1])),
    };
  });
  return loss(logits);
}
