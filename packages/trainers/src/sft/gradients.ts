import * as tf from "@tensorflow/tfjs-core";
import type { NamedRandom, TrainableLM } from "@periodic-eval/core/tfjs";
import type { Batch } from "../data/collate.ts";
import { total } from "../losses/cross-entropy.ts";
import { tokenLosses } from "../losses/token-losses.ts";
import type { LossAndGradients } from "../loop/types.ts";

/**
 * Σ NLL over the scored tokens of all micro-batches, and its gradients: micro-batches of unequal lengths weigh each
 * token alike, as one batch would. The caller disposes both. At most two sets of gradients are alive at once.
 *
 * @param randomOf dropout's streams of the i-th micro-batch
 */
export function accumulateGradients(
  model: TrainableLM,
  batches: readonly Batch[],
  randomOf: (microBatch: number) => NamedRandom,
): LossAndGradients {
  return tf.tidy(() => {
    let total: LossAndGradients | null = null;
    for (const [i, batch] of batches.entries()) {
      const before: LossAndGradients | null = total;
      total = tf.tidy((): LossAndGradients => {
        const found = ofBatch(model, batch, randomOf(i));
        return before === null ? found : sum(before, found);
      });
      if (before !== null) tf.dispose([before.loss, before.gradients]);
    }
    return total!;
  });
}

function ofBatch(model: TrainableLM, batch: Batch, random: NamedRandom): LossAndGradients {
  const ids = tf.tensor2d(batch.ids, [...batch.shape], "int32");
  const rows = tf.tensor1d(batch.rows, "int32");
  const targets = tf.tensor1d(batch.targets, "int32");
  const { value, grads } = tf.variableGrads(
    () => total(tokenLosses(model, { ids, rows, targets }, random)),
    [...model.trainables()],
  );
  return { loss: value, gradients: grads };
}

function sum(a: LossAndGradients, b: LossAndGradients): LossAndGradients {
  const names = new Set([...Object.keys(a.gradients), ...Object.keys(b.gradients)]);
  const gradients: Record<string, tf.Tensor> = {};
  for (const name of names) {
    const [one, other] = [a.gradients[name], b.gradients[name]];
    gradients[name] = one && other ? tf.add(one, other) : tf.clone((one ?? other)!);
  }
  return { loss: tf.add(a.loss, b.loss), gradients };
}
