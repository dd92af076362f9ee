import * as tf from "@tensorflow/tfjs-core";

/** The allocator reuses memory up to this size; larger blocks are allocated each time, which is slow. */
export const chunkBytes = 2 ** 24;

/** Returns how many rows of `columns` float32 values fit into `bytes`; at least 1. */
export const rowsIn = (bytes: number, columns: number): number =>
  Math.max(1, Math.floor(bytes / (4 * columns)));

export type Chunk = readonly [from: number, size: number];

/** Splits rows into as few chunks of at most `most` rows as possible, of similar sizes. */
export function chunksOf(rows: number, most: number): Chunk[] {
  const size = Math.ceil(rows / Math.ceil(rows / most));
  return Array.from({ length: Math.ceil(rows / size) }, (_, i) => {
    return [i * size, Math.min(size, rows - i * size)] as const;
  });
}

/** Returns `size` rows of x, beginning at `from`. */
export function part<T extends tf.Tensor>(x: T, from: number, size: number): T {
  if (size === x.shape[0]) return x;
  const rest = x.shape.slice(1);
  return tf.slice(x, [from, ...rest.map(() => 0)], [size, ...rest]);
}
