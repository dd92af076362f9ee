import * as tf from "@tensorflow/tfjs-core";

/** Of each row of logits [N, V]. */
export interface Partition {
  /** The largest logit, [N]. */
  readonly top: tf.Tensor1D;
  /** [N, V]. */
  readonly probabilities: tf.Tensor2D;
  /** log Σ exp, in nats, [N]. */
  readonly logSum: tf.Tensor1D;
}

/**
 * Softmax and log Σ exp of each row. The sum is `max(x) − log(max(softmax(x)))`, because the largest probability is
 * 1 / Σ exp(x − max): as exact as the usual form, and on wasm 3.5 times as fast (512 × 1,024: 1.8 ms, against 6.5 for
 * log-sum-exp by hand and 12.4 for `logSoftmax`; one core), since only `softmax` has a vectorized exponential there.
 *
 * @returns tensors that the caller disposes (or calls inside `tf.tidy`). NaN or Inf in, NaN or Inf out.
 */
export function partition(logits: tf.Tensor2D): Partition {
  const top = tf.max<tf.Tensor1D>(logits, 1);
  const probabilities = tf.softmax(logits, 1);
  const logSum = tf.sub<tf.Tensor1D>(top, tf.log(tf.max(probabilities, 1)));
  return { top, probabilities, logSum };
}

export interface TargetLosses {
  /** The negative log-likelihood of each row's target, in nats, [N]. */
  readonly losses: tf.Tensor1D;
  /** Of Σ losses in the logits: softmax − one-hot, [N, V]. The ones are subtracted by a scatter: no one-hot matrix exists. */
  readonly gradient: () => tf.Tensor2D;
}

/**
 * What cross-entropy is made of, by itself not differentiable. To be called inside `tf.tidy`, `gradient` as well.
 *
 * @param logits float32 [N, V], N ≥ 1
 * @param targets int32 [N], each in [0, V); not checked, an id outside gives an unspecified value
 */
export function targetLosses(logits: tf.Tensor2D, targets: tf.Tensor1D): TargetLosses {
  const at = tf.stack([tf.range(0, logits.shape[0], 1, "int32"), targets], 1) as tf.Tensor2D;
  const { probabilities, logSum } = partition(logits);
  return {
    losses: tf.sub<tf.Tensor1D>(logSum, tf.gatherND(logits, at)),
    gradient() {
      const overTarget = tf.sub(tf.gatherND(probabilities, at), 1);
      return tf.tensorScatterUpdate(probabilities, at, overTarget);
    },
  };
}
