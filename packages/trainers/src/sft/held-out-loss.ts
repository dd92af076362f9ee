import * as tf from "@tensorflow/tfjs-core";
import type { TrainableLM } from "@periodic-eval/core/tfjs";
import type { Batch } from "../data/collate.ts";
import { crossEntropySum } from "../losses/cross-entropy.ts";

/**
 * Σ NLL / Σ scored tokens over all batches, in nats, and its exponential; forward only, in evaluation mode. Batches are
 * taken one after the other; sums over them are in double precision.
 */
export async function heldOutLoss(
  model: TrainableLM,
  batches: Iterable<Batch>,
): Promise<{ readonly loss: number; readonly perplexity: number }> {
  let [sum, tokens] = [0, 0];
  const leaveEval = model.enterEval?.();
  try {
    for (const batch of batches) {
      const batchSum = tf.tidy(() => {
        const ids = tf.tensor2d(batch.ids, [...batch.shape], "int32");
        const rows = tf.tensor1d(batch.rows, "int32");
        return crossEntropySum(logitsOf(model, batch, ids, rows), tf.tensor1d(batch.targets, "int32"));
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
  } finally {
    leaveEval?.();
  }
  const loss = sum / tokens;
  return { loss, perplexity: Math.exp(loss) };
}

/** Documents of packed rows are known to training's pass alone, which draws nothing in evaluation mode. */
function logitsOf(
  model: TrainableLM,
  { documentStarts }: Batch,
  ids: tf.Tensor2D,
  rows: tf.Tensor1D,
): tf.Tensor2D {
  if (documentStarts !== null) return model.trainingLogits(ids, rows, refuseToDraw, documentStarts);
  return model.logitsAt?.(ids, rows) ?? model.trainingLogits(ids, rows, refuseToDraw);
}

function refuseToDraw(place: string): never {
  throw new Error(`${place} draws at random in evaluation mode`);
}
