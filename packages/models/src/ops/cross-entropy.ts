import * as tf from "@tensorflow/tfjs-core";
import { targetLosses } from "@periodic-eval/core/tfjs";
import { differentiable, isDifferentiated } from "./differentiable.ts";

/** Computes cross-entropy. logits [N, V], targets int32 [N] → the negative log-likelihood of each target in nats, [N]. */
export function crossEntropy(logits: tf.Tensor2D, targets: tf.Tensor1D): tf.Tensor1D {
  const isTaken = isDifferentiated();
  return differentiable([logits], (keep) => {
    const { losses, gradient } = targetLosses(logits, targets);
    if (isTaken) keep([gradient()]);
    return {
      value: losses,
      backward: (above, kept) => [tf.mul(kept[0]!, tf.reshape(above, [-1, 1]))],
    };
  });
}
