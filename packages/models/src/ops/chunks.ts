import * as tf from "@tensorflow/tfjs-core";

/** Memory of this size is used again; what is larger is new each time, and slow. */
export const chunkBytes = 2 ** 24;

/** Rows of so many float32 that fit. */
export const rowsIn = (bytes: number, columns: number): number =>
  Math.max(1, Math.floor(bytes / (4 * columns)));

export type Chunk = readonly [from: number, size: number];

/** As few as possible, of like size. */
export function chunksOf(rows: number, most: number): Chunk[] {
  const size = Math.ceil(rows / Math.ceil(rows / most));
  return Array.from({ length: Math.ceil(rows / size) }, (_, i) => {
    return [i * size, Math.min(size, rows - i * size)] as const;
  });
}

export function part<T extends tf.Tensor>(x: T, from: number, size: number): T {
  if (size === x.shape[0]) return x;
  const rest = x.shape.slice(1);
  return tf.slice(x, [from, ...rest.map(() => 0)], [size, ...rest]);
}
