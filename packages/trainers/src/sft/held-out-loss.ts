import * as tf from "@tensorflow/tfjs-core";
import type { TrainableLM } from "@periodic-eval/core/tfjs";
import type { Batch } from "../data/collate.ts";
import { meansOver } from "../losses/means.ts";
import { evaluatedLosses } from "../losses/token-losses.ts";

/** Σ NLL / Σ scored tokens over all batches, in nats, and its exponential; forward only, in evaluation mode. */
export async function heldOutLoss(
  model: TrainableLM,
  batches: Iterable<Batch>,
): Promise<{ readonly loss: number; readonly perplexity: number }> {
  const { loss } = await meansOver(batches, (batch) => {
    const ids = tf.tensor2d(batch.ids, [...batch.shape], "int32");
    const rows = tf.tensor1d(batch.rows, "int32");
    const targets = tf.tensor1d(batch.targets, "int32");
    const { documentStarts } = batch;
    const losses = evaluatedLosses(model, { ids, rows, targets, documentStarts });
    return { sums: { loss: tf.sum<tf.Scalar>(losses) }, count: batch.targets.length };
  });
  return { loss, perplexity: Math.exp(loss) };
}
