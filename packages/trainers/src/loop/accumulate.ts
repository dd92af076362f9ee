import * as tf from "@tensorflow/tfjs-core";
import type { LossAndGradients } from "./types.ts";

/**
 * The sums and gradients of all micro-batches together: each token or pair weighs alike, as it would in one batch. The
 * caller disposes them. At most two sets of gradients are alive at once.
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
  }
  return sums;
}
