import * as tf from "@tensorflow/tfjs-core";
import type { CausalLM, NamedRandom, TrainableLM } from "@periodic-eval/tfjs";
import { collate, scoredTokensOf, type Batch } from "../data/collate.ts";
import type { PreferencePair } from "../data/render-preference.ts";
import type { LossAndGradients } from "../loop/step-work.ts";
import { meansOver } from "../losses/means.ts";
import { sequenceLogProbs } from "../losses/sequence-log-probs.ts";
import { evaluatedLosses, tokenLosses } from "../losses/token-losses.ts";
import { dpoLossSum, rewardNames, rewardSums, type DPOLossOptions } from "./dpo-loss.ts";

/** B pairs in one batch of 2B sequences, the chosen ones first; each token of a completion is scored. */
export interface PairBatch extends Batch {
  /** [2B], tokens of each completion; Σ = N. */
  readonly counts: readonly number[];
}

export function collatePairs(pairs: readonly PreferencePair[], { fixedLength }: CausalLM): PairBatch {
  const sequences = [...pairs.map(({ chosen }) => chosen), ...pairs.map(({ rejected }) => rejected)];
  return { ...collate(sequences, fixedLength), counts: sequences.map(({ scored }) => scored.length) };
}

/**
 * Returns the loss summed over the pairs of a batch, its gradients and the sums of the reward metrics, from one forward and
 * one backward pass. The caller disposes all of them.
 *
 * @param reference float32 [2B], the reference's log-probs of the batch's completions.
 * @param options `random` holds the streams for dropout.
 */
export function pairGradients(
  model: TrainableLM,
  batch: PairBatch,
  reference: Float32Array,
  options: DPOLossOptions & { readonly random: NamedRandom },
): LossAndGradients {
  return tf.tidy(() => {
    const { counts } = batch;
    const tokens = scoredTokensOf(batch);
    const baseline = tf.tensor1d(reference);
    let logProbs: tf.Tensor1D | null = null;
    try {
      const { value, grads } = tf.variableGrads(() => {
        const losses = tokenLosses(model, tokens, options.random);
        // The reward metrics need them after the tape has disposed its tensors.
        logProbs = tf.keep(sequenceLogProbs(losses, counts));
        return dpoLossSum({ logProbs, reference: baseline, counts }, options);
      }, [...model.trainables()]);
      const sums = rewardSums({ logProbs: logProbs!, reference: baseline, counts }, options.beta);
      return { loss: value, gradients: grads, sums };
    } finally {
      (logProbs as tf.Tensor | null)?.dispose();
    }
  });
}

/** The metrics on held-out pairs: the loss and the metrics that TRL logs besides it. */
export const heldOutPairMetrics = ["loss", ...rewardNames] as const;

/** A batch, and the reference's log-probs of its completions, float32 [2B]. */
export interface ComparedPairs {
  readonly batch: PairBatch;
  readonly reference: Float32Array;
}

/** Returns loss and rewards as means over all pairs. Runs forward in evaluation mode. */
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

/**
 * Returns Σ log p of each completion of a batch, float32 [2B], in evaluation mode and without gradients. The caller disposes
 * it.
 */
export const pairLogProbs = (lm: CausalLM, batch: PairBatch): tf.Tensor1D =>
  tf.tidy(() => sequenceLogProbs(evaluatedLosses(lm, scoredTokensOf(batch)), batch.counts));
