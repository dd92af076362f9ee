import * as tf from "@tensorflow/tfjs-core";
import type { CausalLM, NamedRandom, TrainableLM } from "@periodic-eval/core/tfjs";
import { collate } from "../data/collate.ts";
import type { LossAndGradients } from "../loop/types.ts";
import { sequenceLogProbs } from "../losses/sequence-log-probs.ts";
import { evaluatedLosses, tokenLosses } from "../losses/token-losses.ts";
import type { PreferencePair } from "../data/render-preference.ts";
import { dpoLossSum, rewardSums, type DPOLossOptions } from "./dpo-loss.ts";

/** B pairs in one batch of 2B sequences, those chosen first. */
export interface PairBatch {
  /** [2B, T], right-padded with 0. */
  readonly ids: Int32Array;
  readonly shape: readonly [sequences: number, T: number];
  /** [N] positions in the flattened 2B·T whose logits predict a completion's token. */
  readonly rows: Int32Array;
  /** [N] the tokens to be predicted. */
  readonly targets: Int32Array;
  /** [2B], tokens of each completion; Σ = N. */
  readonly counts: readonly number[];
  /** Tokens fed, padding not counted. */
  readonly tokens: number;
}

export function collatePairs(pairs: readonly PreferencePair[], { fixedLength }: CausalLM): PairBatch {
  const sequences = [...pairs.map(({ chosen }) => chosen), ...pairs.map(({ rejected }) => rejected)];
  return { ...collate(sequences, fixedLength), counts: sequences.map(({ scored }) => scored.length) };
}

/**
 * The loss summed over the pairs of a batch, its gradients and what TRL logs of them, from one forward pass and one
 * backward. The caller disposes all.
 *
 * @param reference float32 [2B], log-probs of the batch's completions
 * @param random dropout's streams
 */
export function pairGradients(
  model: TrainableLM,
  batch: PairBatch,
  reference: Float32Array,
  options: DPOLossOptions & { readonly random: NamedRandom },
): LossAndGradients {
  return tf.tidy(() => {
    const { counts } = batch;
    const { ids, rows, targets } = tensorsOf(batch);
    const baseline = tf.tensor1d(reference);
    let logProbs: tf.Tensor1D | null = null;
    try {
      const { value, grads } = tf.variableGrads(() => {
        const losses = tokenLosses(model, { ids, rows, targets }, options.random);
        // The metrics want them too, after the tape has disposed what is its own.
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

/** Σ log p of each sequence of a batch, float32 [2B], in evaluation mode and without gradients. The caller disposes it. */
export const pairLogProbs = (lm: CausalLM, batch: PairBatch): tf.Tensor1D =>
  tf.tidy(() => sequenceLogProbs(evaluatedLosses(lm, tensorsOf(batch)), batch.counts));

const tensorsOf = ({ ids, shape, rows, targets }: PairBatch) => ({
  ids: tf.tensor2d(ids, [...shape], "int32"),
  rows: tf.tensor1d(rows, "int32"),
  targets: tf.tensor1d(targets, "int32"),
});
