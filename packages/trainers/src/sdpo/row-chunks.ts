import * as tf from "@tensorflow/tfjs-core";

/** Engines reuse memory blocks up to this size; larger ones are allocated each time, which is slow. */
export const chunkBytes = 2 ** 24;

/** Selects the rows of a tensor [N, …] that belong to the current chunk. */
export type SelectRows = <T extends tf.Tensor>(tensor: T) => T;

/**
 * Runs `compute` on chunks of the rows of logits [N, V], the fewest chunks of similar size that fit in `bytes`. Disposes the
 * temporaries of each chunk before the next.
 *
 * @returns The tensors of each chunk. The caller, or the surrounding `tf.tidy`, disposes them.
 */
export function mapRowChunks(
  logits: tf.Tensor2D,
  compute: (chunk: tf.Tensor2D, select: SelectRows) => tf.Tensor[],
  bytes = chunkBytes,
): tf.Tensor[][] {
  const [rows, columns] = logits.shape;
  const most = Math.max(1, Math.floor(bytes / (4 * columns)));
  const size = Math.ceil(rows / Math.ceil(rows / most));
  return Array.from({ length: Math.ceil(rows / size) }, (_, i) => {
    const [from, count] = [i * size, Math.min(size, rows - i * size)];
    const select: SelectRows = (tensor) => {
      if (count === rows) return tensor;
      const rest = tensor.shape.slice(1);
      return tf.slice(tensor, [from, ...rest.map(() => 0)], [count, ...rest]);
    };
    return tf.tidy(() => compute(select(logits), select));
  });
}
