import * as tf from "@tensorflow/tfjs-core";
import type { TrainableLM } from "@periodic-eval/tfjs";
import { differentiable } from "../ops/differentiable.ts";

const ignored = -100;

/** Two sequences for `meanLoss`, the second padded. */
export const twoRows = {
  ids: [
    [1, 2, 3, 4, 5, 6],
    [6, 7, 8, 9, 0, 0],
  ],
  labels: [
    [ignored, 2, 3, 4, 5, 6],
    [ignored, 7, 8, 9, ignored, ignored],
  ],
};

/** Returns the mean negative log-likelihood of the labels other than −100, each predicted at the position before it. */
export function meanLoss(
  model: TrainableLM,
  inputIds: readonly (readonly number[])[],
  labels: readonly (readonly number[])[],
): tf.Scalar {
  const length = inputIds[0]!.length;
  const scored = labels.flatMap((row, b) =>
    row.flatMap((label, t) => (t > 0 && label !== ignored ? [{ row: b * length + t - 1, label }] : [])),
  );
  const ids = tf.tensor2d(inputIds.flat(), [inputIds.length, length], "int32");
  const rows = tf.tensor1d(
    scored.map(({ row }) => row),
    "int32",
  );
  const targets = tf.tensor1d(
    scored.map(({ label }) => label),
    "int32",
  );
  const logits = model.trainingLogits(ids, rows, () => () => 0.5);
  return crossEntropy(logits, targets);
}

/** Computes the mean of −log softmax at the targets: logits [N, V], targets int32 [N]. */
export function crossEntropy(logits: tf.Tensor2D, targets: tf.Tensor1D): tf.Scalar {
  const [count, vocabSize] = logits.shape;
  return differentiable([logits], (save) => {
    const probabilities = tf.softmax(logits);
    const wanted = tf.cast(tf.oneHot(targets, vocabSize), "float32");
    save([tf.div(tf.sub(probabilities, wanted), count)]);
    const likelihoods = tf.sum(tf.mul(probabilities, wanted), -1);
    return {
      value: tf.neg<tf.Scalar>(tf.mean(tf.log(likelihoods))),
      backward: (gradient, kept) => [tf.mul(kept[0]!, gradient)],
    };
  });
}
