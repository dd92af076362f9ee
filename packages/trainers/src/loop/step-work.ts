import * as tf from "@tensorflow/tfjs-core";

/** The data of one optimizer step. Nothing is computed until `gradients` is called. */
export interface StepWork {
  /** Divides the sums: scored tokens for SFT, pairs for DPO, response tokens for SDPO. */
  readonly divisor: number;
  /** Tokens in the model's input, without padding. */
  readonly tokens: number;
  /** File and line of each row, for error messages. */
  readonly where: readonly string[];
  gradients(): LossAndGradients;
}

/** Sums over all scored positions, and the gradients of `loss` by variable name. Whoever holds them disposes them. */
export type LossAndGradients = {
  readonly loss: tf.Scalar;
  readonly gradients: tf.NamedTensorMap;
  /** Further sums by metric name; the metric is the sum over `StepWork.divisor`, as for the loss. */
  readonly sums?: Readonly<Record<string, tf.Scalar>>;
};

/**
 * Adds up the sums and gradients of all micro-batches, so that each token or pair has the same weight as in one large batch.
 * At most two sets of gradients exist at once. The caller disposes the result.
 */
export function accumulate(microBatches: readonly (() => LossAndGradients)[]): LossAndGradients {
  return tf.tidy(() => {
    let total: LossAndGradients | null = null;
    for (const compute of microBatches) {
      const before: LossAndGradients | null = total;
      total = tf.tidy((): LossAndGradients => {
        const found = compute();
        return before === null ? found : add(before, found);
      });
      if (before !== null) tf.dispose([before.loss, before.gradients, before.sums ?? {}]);
    }
    return total!;
  });
}

const add = (a: LossAndGradients, b: LossAndGradients): LossAndGradients => ({
  loss: tf.add(a.loss, b.loss),
  gradients: addNamed(a.gradients, b.gradients),
  ...((a.sums ?? b.sums) && { sums: addNamed(a.sums ?? {}, b.sums ?? {}) }),
});

function addNamed<T extends tf.Tensor>(a: Readonly<Record<string, T>>, b: Readonly<Record<string, T>>) {
  const sums: Record<string, T> = {};
  for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const [one, other] = [a[name], b[name]];
    sums[name] = one && other ? tf.add<T>(one, other) : tf.clone((one ?? other)!);
    // Now, not at the end: else three sets would exist.
    tf.dispose([one, other]);
  }
  return sums;
}
