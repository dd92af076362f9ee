import * as tf from "@tensorflow/tfjs-core";

/** Memory of this size is used again; what is larger is new each time, and slow. */
export const chunkBytes = 2 ** 24;

/** The same rows of a tensor [N, …] as of the logits. */
export type Part = <T extends tf.Tensor>(tensor: T) => T;

/**
 * Looks at logits [N, V] a few rows at a time, as few chunks as `bytes` allow, of like size; what a look makes on its way is
 * disposed before the next.
 *
 * @returns what each look gave; disposing is the caller's, or the surrounding `tf.tidy`'s
 */
export function inChunks(
  logits: tf.Tensor2D,
  look: (some: tf.Tensor2D, part: Part) => tf.Tensor[],
  bytes = chunkBytes,
): tf.Tensor[][] {
  const [rows, columns] = logits.shape;
  const most = Math.max(1, Math.floor(bytes / (4 * columns)));
  const size = Math.ceil(rows / Math.ceil(rows / most));
  return Array.from({ length: Math.ceil(rows / size) }, (_, i) => {
    const [from, count] = [i * size, Math.min(size, rows - i * size)];
    const part: Part = (tensor) => {
      if (count === rows) return tensor;
      const rest = tensor.shape.slice(1);
      return tf.slice(tensor, [from, ...rest.map(() => 0)], [count, ...rest]);
    };
    return tf.tidy(() => look(part(logits), part));
  });
}
