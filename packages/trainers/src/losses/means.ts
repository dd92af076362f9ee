import * as tf from "@tensorflow/tfjs-core";

/** Sums over what a batch holds, and what they are divided by. */
export interface BatchSums<Name extends string> {
  readonly sums: Readonly<Record<Name, tf.Scalar>>;
  readonly count: number;
}

/**
 * Means over all batches together, by name. Batches are taken one after the other; sums over them are in double precision.
 *
 * @param sumsOf its tensors are disposed here, and what it makes on its way
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
    // A turn of the event loop: an abort and background grading are heard in a long look as well.
    await tf.nextFrame();
  }
  return Object.fromEntries([...totals].map(([name, sum]) => [name, sum / count])) as Record<Name, number>;
}
