import * as tf from "@tensorflow/tfjs-core";

/**
 * Returns Σ log p of the targets of each sequence, in nats. S sequences, N scored positions in the order of their sequences.
 *
 * @param losses float32 [N], the negative log-likelihood of each target.
 * @param counts [S], scored positions of each sequence, each ≥ 1; Σ = N.
 * @returns float32 [S], once differentiable in `losses`. The caller disposes it. NaN or Inf in, NaN or Inf out.
 */
export function sequenceLogProbs(losses: tf.Tensor1D, counts: readonly number[]): tf.Tensor1D {
  const logProbs = tf.customGrad<tf.Tensor1D>((x) => ({
    value: tf.tidy(() => tf.neg(sumOfEach(x as tf.Tensor1D, counts))),
    gradFunc: (above: tf.Tensor) => {
      const sequence = counts.flatMap((count, i) => Array<number>(count).fill(i));
      return tf.neg(tf.gather(above, tf.tensor1d(sequence, "int32")));
    },
  }));
  return logProbs(losses);
}

/** [N] → [S]. Scatters each sequence to its own row: colliding indexes would be summed in an order that backends choose. */
function sumOfEach(values: tf.Tensor1D, counts: readonly number[]): tf.Tensor1D {
  const places = counts.flatMap((count, i) => Array.from({ length: count }, (_, j) => [i, j]));
  const index = tf.tensor2d(places, [places.length, 2], "int32");
  return tf.sum(tf.scatterND(index, values, [counts.length, Math.max(...counts)]), 1);
}
