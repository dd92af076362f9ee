import * as tf from "@tensorflow/tfjs-core";
import type { TrainableLM } from "@periodic-eval/core/tfjs";
import type { Batch } from "../data/collate.ts";
import { evaluatedLosses } from "../losses/token-losses.ts";

/**
 * Σ NLL / Σ scored tokens over all batches, in nats, and its exponential; forward only, in evaluation mode. Batches are
 * taken one after the other; sums over them are in double precision.
 */
export async function heldOutLoss(
  model: TrainableLM,
  batches: Iterable<Batch>,
): Promise<{ readonly loss: number; readonly perplexity: number }> {
  let [sum, tokens] = [0, 0];
  for (const batch of batches) {
    const { documentStarts } = batch;
    const batchSum = tf.tidy(() => {
      const ids = tf.tensor2d(batch.ids, [...batch.shape], "int32");
      const rows = tf.tensor1d(batch.rows, "int32");
      const targets = tf.tensor1d(batch.targets, "int32");
      return tf.sum(evaluatedLosses(model, { ids, rows, targets, documentStarts }));
    });
    try {
      sum += (await batchSum.data<"float32">())[0]!;
    } finally {
      batchSum.dispose();
    }
    tokens += batch.targets.length;
    // A turn of the event loop: an abort and background grading are heard in a long look as well.
    await tf.nextFrame();
  }
  const loss = sum / tokens;
  return { loss, perplexity: Math.exp(loss) };
}
