import * as tf from "@tensorflow/tfjs-core";
import type { CausalLM, NamedRandom, TrainableLM } from "@periodic-eval/tfjs";
import { collate, scoredTokensOf, type Batch } from "../data/collate.ts";
import type { PreferencePair } from "../data/preference-rows.ts";
import type { LossAndGradients } from "../loop/training-data.ts";
import { meansOver, sequenceLogProbs, evaluatedLosses, tokenLosses } from "../losses/token-losses.ts";
import type { DPOConfig } from "./dpo-config.ts";

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

export type DPOLossOptions = Pick<DPOConfig, "beta" | "lossType" | "labelSmoothing">;

/** B pairs as 2B sequences: the chosen ones, then the rejected ones in the same order. */
interface ScoredPairs {
  /** float32 [2B], Σ log p of each completion's tokens, in nats. */
  readonly logProbs: tf.Tensor1D;
  /** float32 [2B], the same sums under the reference. */
  readonly reference: tf.Tensor1D;
  /** [2B], tokens of each completion. */
  readonly counts: readonly number[];
}

/**
 * Returns Σ over pairs of the loss of direct preference optimization, as in TRL 1.16.0. With h the log-ratio of chosen to
 * rejected, each relative to the reference, and z = βh:
 *
 * - `sigmoid`: −(1 − ε) log σ(z) − ε log σ(−z), ε the label smoothing (Rafailov et al. 2023; cDPO, Mitchell 2023, which
 *   TRL 1.16 no longer has);
 * - `hinge`: max(0, 1 − z) (Zhao et al. 2023);
 * - `ipo`: (h − 1/2β)², where h uses log-ratios per token (Azar et al. 2023).
 *
 * The gradient is one weight per sequence, so that a single pass of the model gives loss and gradients.
 *
 * @returns Scalar, once differentiable in `logProbs`. The caller disposes it.
 */
function dpoLossSum({ logProbs, reference, counts }: ScoredPairs, options: DPOLossOptions): tf.Scalar {
  const perToken = options.lossType === "ipo";
  const pairs = counts.length / 2;
  const weights = counts.map((count, i) => (i < pairs ? 1 : -1) / (perToken ? count : 1));
  const loss = tf.customGrad((x, save) => {
    const weight = tf.tensor2d(weights, [2, pairs]);
    const ratio = tf.sum(tf.mul(tf.reshape(tf.sub(x as tf.Tensor1D, reference), [2, pairs]), weight), 0);
    const { value, slope } = lossOf(ratio, options);
    (save as (tensors: tf.Tensor[]) => void)([weight, slope]);
    return {
      value: tf.sum<tf.Scalar>(value),
      gradFunc: (dy: tf.Tensor, saved: tf.Tensor[]) => {
        const [w, dh] = saved as [tf.Tensor2D, tf.Tensor1D];
        return tf.mul(tf.reshape(tf.mul(w, dh), [2 * pairs]), dy);
      },
    };
  });
  return loss(logProbs);
}

/** Returns the loss of each pair and its derivative by the log-ratio h, float32 [B]. */
function lossOf(
  h: tf.Tensor,
  { beta, lossType, labelSmoothing }: DPOLossOptions,
): { value: tf.Tensor; slope: tf.Tensor } {
  if (lossType === "ipo") {
    const off = tf.sub(h, 1 / (2 * beta));
    return { value: tf.square(off), slope: tf.mul(off, 2) };
  }
  const z = tf.mul(h, beta);
  if (lossType === "hinge") {
    const short = tf.sub(1, z);
    return { value: tf.relu(short), slope: tf.mul(tf.step(short), -beta) };
  }
  // −(1 − ε) log σ(z) − ε log σ(−z) = −log σ(z) + εz; and −log σ(z) = max(0, −z) + log(1 + exp(−|z|)) never overflows.
  const negLogSigmoid = tf.add(tf.relu(tf.neg(z)), tf.log1p(tf.exp(tf.neg(tf.abs(z)))));
  return {
    value: tf.add(negLogSigmoid, tf.mul(z, labelSmoothing)),
    slope: tf.mul(tf.sub(labelSmoothing, tf.sigmoid(tf.neg(z))), beta),
  };
}

/** The metrics that TRL logs besides the loss, each a mean over pairs. */
const rewardNames = [
  "rewards/chosen",
  "rewards/rejected",
  "rewards/accuracies",
  "rewards/margins",
  "logps/chosen",
  "logps/rejected",
] as const;

/** The metrics on held-out pairs: the loss and the metrics that TRL logs besides it. */
export const heldOutPairMetrics = ["loss", ...rewardNames] as const;

/** Returns sums over pairs, by the names under which TRL logs their means. The caller disposes them. */
function rewardSums(
  { logProbs, reference }: ScoredPairs,
  beta: number,
): Record<(typeof rewardNames)[number], tf.Scalar> {
  return tf.tidy(() => {
    const pairs = logProbs.size / 2;
    const halves = (of: tf.Tensor1D) => [tf.slice(of, 0, pairs), tf.slice(of, pairs, pairs)] as const;
    const [chosen, rejected] = halves(tf.mul(tf.sub(logProbs, reference), beta));
    const [chosenLogProbs, rejectedLogProbs] = halves(logProbs);
    return {
      "rewards/chosen": tf.sum(chosen),
      "rewards/rejected": tf.sum(rejected),
      "rewards/accuracies": tf.sum(tf.cast(tf.greater(chosen, rejected), "float32")),
      "rewards/margins": tf.sum(tf.sub(chosen, rejected)),
      "logps/chosen": tf.sum(chosenLogProbs),
      "logps/rejected": tf.sum(rejectedLogProbs),
    };
  });
}
