import * as tf from "@tensorflow/tfjs-core";
import type { NamedRandom, TrainableLM } from "@periodic-eval/core/tfjs";
import type { Batch } from "../data/collate.ts";
import { total } from "../losses/cross-entropy.ts";
import { tokenLosses } from "../losses/token-losses.ts";
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
    const { documentStarts } = batch;
    const { value, grads } = tf.variableGrads(
      () => total(tokenLosses(model, { ids, rows, targets, documentStarts }, random)),
      [...model.trainables()],
    );
    return { loss: value, gradients: grads };
  });
}
