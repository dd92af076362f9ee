import * as tf from "@tensorflow/tfjs-core";
import type { NamedRandom, TrainableLM } from "@periodic-eval/tfjs";
import { scoredTokensOf, type Batch } from "../data/collate.ts";
import type { LossAndGradients } from "../loop/step-work.ts";
import { total } from "../losses/cross-entropy.ts";
import { meansOver } from "../losses/means.ts";
import { evaluatedLosses, tokenLosses } from "../losses/token-losses.ts";

/**
 * Returns Σ NLL over the scored tokens of a batch, in nats, and its gradients. The caller disposes both.
 *
 * @param random Streams for dropout.
 */
export function batchGradients(model: TrainableLM, batch: Batch, random: NamedRandom): LossAndGradients {
  return tf.tidy(() => {
    const tokens = scoredTokensOf(batch);
    const { value, grads } = tf.variableGrads(
      () => total(tokenLosses(model, tokens, random)),
      [...model.trainables()],
    );
    return { loss: value, gradients: grads };
  });
}

/** Returns Σ NLL / Σ scored tokens over all batches, in nats, and its exponential. Runs forward in evaluation mode. */
export async function heldOutLoss(
  model: TrainableLM,
  batches: Iterable<Batch>,
): Promise<{ readonly loss: number; readonly perplexity: number }> {
  const { loss } = await meansOver(batches, (batch) => {
    const losses = evaluatedLosses(model, scoredTokensOf(batch));
    return { sums: { loss: tf.sum<tf.Scalar>(losses) }, count: batch.targets.length };
  });
  return { loss, perplexity: Math.exp(loss) };
}
