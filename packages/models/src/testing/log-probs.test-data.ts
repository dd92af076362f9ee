import * as tf from "@tensorflow/tfjs-core";
import type { CheckpointLM } from "../checkpoint/model.ts";

/** Returns log p of every token after each position from the model's logits, normalized in float64: [T][V]. */
export function logProbsOf(model: CheckpointLM, ids: readonly number[]): number[][] {
  const logits = tf.tidy(() => model.logits(tf.tensor2d([...ids], [1, ids.length], "int32")).arraySync())[0]!;
  return logits.map((row) => {
    const top = Math.max(...row);
    const logSum = top + Math.log(row.reduce((sum, logit) => sum + Math.exp(logit - top), 0));
    return row.map((logit) => logit - logSum);
  });
}
