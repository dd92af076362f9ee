import { nextTurn } from "@periodic-eval/core/model";
import * as tf from "@tensorflow/tfjs-core";

/** Sums over the scored items of a batch, and the number of items. */
export interface BatchSums<Name extends string> {
  readonly sums: Readonly<Record<Name, tf.Scalar>>;
  readonly count: number;
}

/**
 * Returns means over all batches together, by name. Runs batches one after the other and adds up in double precision.
 *
 * @param sumsOf Computes one batch. All tensors that it creates are disposed here.
 */
export async function meansOver<B, Name extends string>(
  batches: Iterable<B>,
  sumsOf: (batch: B) => BatchSums<Name>,
): Promise<Readonly<Record<Name, number>>> {
  const totals = new Map<Name, number>();
  let count = 0;
  for (const batch of batches) {
    let names: Name[] = [];
    const stacked = tf.tidy(() => {
      const { sums, count: own } = sumsOf(batch);
      count += own;
      names = Object.keys(sums) as Name[];
      return tf.stack(names.map((name) => sums[name]));
    });
    try {
      const values = await stacked.data<"float32">();
      for (const [i, name] of names.entries()) totals.set(name, (totals.get(name) ?? 0) + values[i]!);
    } finally {
      stacked.dispose();
    }
    // Yields to the event loop, so that an abort and background grading get through during a long validation.
    await nextTurn();
  }
  return Object.fromEntries([...totals].map(([name, sum]) => [name, sum / count])) as Record<Name, number>;
}
