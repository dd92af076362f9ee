import * as tf from "@tensorflow/tfjs-core";

/**
 * Rotary position embeddings (Su et al. 2021) of the first T positions. Both dimensions of a pair have the cosine and sine of
 * its angle, dimensions without rotation have 1 and 0.
 */
export interface RotaryTables {
  /** float32 [T, D] each, or of the shape of the rotated tensor. */
  readonly cosines: tf.Tensor;
  readonly sines: tf.Tensor;
  /** float32 [D, D]: for each pair (a, b), x·swap has −x[b] at a and x[a] at b. */
  readonly swap: tf.Tensor2D;
}

/**
 * Rotates each row by the angles of its position: x [B, T, D], or x [N, heads·D] with tables of that shape. Swaps pairs by
 * a product with a matrix of 0 and ±1, which is exact and fast; slices and concatenations of small rows are slow on wasm.
 */
export function rotate<T extends tf.Tensor>(x: T, { cosines, sines, swap }: RotaryTables): T {
  return tf.tidy(() => {
    const swapped = tf.reshape(tf.matMul(asRows(x, swap), swap), x.shape);
    return tf.add<T>(tf.mul(x, cosines), tf.mul(swapped, sines));
  });
}

/** Applies the transpose of `rotate`, for gradients. */
export function rotateBack(x: tf.Tensor3D, { cosines, sines, swap }: RotaryTables): tf.Tensor3D {
  return tf.tidy(() => {
    // swapᵀ = −swap
    const swapped = tf.reshape(tf.matMul(asRows(tf.mul(x, sines), swap), swap), x.shape);
    return tf.sub(tf.mul(x, cosines), swapped);
  });
}

/** Reshapes to one row for each head of each token. */
const asRows = (x: tf.Tensor, swap: tf.Tensor2D): tf.Tensor2D => tf.reshape(x, [-1, swap.shape[0]]);
