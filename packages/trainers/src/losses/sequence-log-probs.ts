import * as tf from "@tensorflow/tfjs-core";

/**
 * Σ log p of the targets of each sequence, in nats. S sequences, N scored positions in the order of their sequences, V
 * vocabulary.
 *
 * The gradient is `one-hot − softmax`, times what comes from above for the row's sequence; no one-hot matrix exists.
 *
 * @param logits float32 [N, V]
 * @param targets int32 [N], each in [0, V); not checked, an id outside gives an unspecified value
 * @param counts [S] scored positions of each sequence, each ≥ 1; Σ = N
 * @returns float32 [S]; differentiable in `logits` once. Disposing is the caller's. NaN or Inf in, NaN or Inf out.
 */
export function sequenceLogProbs(
  logits: tf.Tensor2D,
  targets: tf.Tensor1D,
  counts: readonly number[],
): tf.Tensor1D {
  const logProbs = tf.customGrad((x, save) => {
    const scores = x as tf.Tensor2D;
    const rows = tf.range(0, scores.shape[0], 1, "int32");
    const at = tf.stack([rows, targets], 1) as tf.Tensor2D;
    // The largest probability is the inverse of Σ exp(logits − max): see `crossEntropySum`.
    const probabilities = tf.softmax(scores);
    const logSum = tf.sub(tf.max(scores, 1), tf.log(tf.max(probabilities, 1)));
    const value = sumOfEach(tf.sub(tf.gatherND(scores, at), logSum), counts);
    (save as (tensors: tf.Tensor[]) => void)([probabilities, at]);
    return {
      value,
      gradFunc: (dy: tf.Tensor, saved: tf.Tensor[]) => {
        const [p, index] = saved as [tf.Tensor2D, tf.Tensor2D];
        const softmaxLessOneHot = tf.tensorScatterUpdate(p, index, tf.sub(tf.gatherND(p, index), 1));
        const sequence = tf.tensor1d(
          counts.flatMap((count, i) => Array<number>(count).fill(i)),
          "int32",
        );
        return tf.mul(softmaxLessOneHot, tf.expandDims(tf.neg(tf.gather(dy, sequence)), 1));
      },
    };
  });
  return logProbs(logits);
}

/** [N] → [S]. A row for each sequence, so that no two values meet in one place: their order would be the engine's. */
function sumOfEach(values: tf.Tensor, counts: readonly number[]): tf.Tensor1D {
  const places = counts.flatMap((count, i) => Array.from({ length: count }, (_, j) => [i, j]));
  const index = tf.tensor2d(places, [places.length, 2], "int32");
  return tf.sum(tf.scatterND(index, values, [counts.length, Math.max(...counts)]), 1);
}
