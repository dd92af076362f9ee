import * as tf from "@tensorflow/tfjs-core";
import type { NamedRandom, TrainableLM } from "@periodic-eval/core/tfjs";
import type { Batch } from "../data/collate.ts";
import { crossEntropySum } from "../losses/cross-entropy.ts";
import type { LossAndGradients } from "../loop/types.ts";

/**
 * Σ NLL over the scored tokens of a batch, in nats, and its gradients. The caller disposes both.
 *
 * @param random dropout's streams
 */
export function batchGradients(model: TrainableLM, batch: Batch, random: NamedRandom): LossAndGradients {
  return tf.tidy(() => {
    const ids = tf.tensor2d(batch.ids, [...batch.shape], "int32");
    const rows = tf.tensor1d(batch.rows, "int32");
    const targets = tf.tensor1d(batch.targets, "int32");
    const documents = batch.documentStarts === null ? ([] as const) : ([batch.documentStarts] as const);
    const { value, grads } = tf.variableGrads(
      () => crossEntropySum(model.trainingLogits(ids, rows, random, ...documents), targets),
      [...model.trainables()],
    );
    return { loss: value, gradients: grads };
  });
}
