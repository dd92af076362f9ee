import * as tf from "@tensorflow/tfjs-core";
import type { TrainableLM } from "@periodic-eval/core/tfjs";
import { meansOver } from "../losses/means.ts";
import { dpoLossSum, rewardNames, rewardSums, type DPOLossOptions } from "./dpo-loss.ts";
import { pairLogProbs, type PairBatch } from "./gradients.ts";

/** What is found on held-out pairs: the loss and what TRL logs beside it. */
export const heldOutPairMetrics = ["loss", ...rewardNames] as const;

/** A batch, and float32 [2B], the reference's log-probs of its completions. */
export interface ComparedPairs {
  readonly batch: PairBatch;
  readonly reference: Float32Array;
}

/** Loss and rewards as a step has them, means over all pairs; forward only, in evaluation mode. */
export const heldOutRewards = async (
  model: TrainableLM,
  batches: Iterable<ComparedPairs>,
  options: DPOLossOptions,
): Promise<Readonly<Record<(typeof heldOutPairMetrics)[number], number>>> =>
  meansOver(batches, ({ batch, reference }) => {
    const { counts } = batch;
    const pairs = { logProbs: pairLogProbs(model, batch), reference: tf.tensor1d(reference), counts };
    const sums = { loss: dpoLossSum(pairs, options), ...rewardSums(pairs, options.beta) };
    return { sums, count: counts.length / 2 };
  });
