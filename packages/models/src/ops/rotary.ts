import * as tf from "@tensorflow/tfjs-core";

/**
 * Rotary position embeddings (Su et al. 2021) of the first T positions, in the layout of Hugging Face: dimension i of a
 * head is paired with i + D/2. Dimensions that do not rotate have cosine 1 and sine 0.
 */
export interface RotaryTables {
  /** float32 [T, D] each. */
  readonly cosines: tf.Tensor2D;
  readonly sines: tf.Tensor2D;
  /** float32 [D, D]: x·swap has −x[i + D/2] at i and x[i] at i + D/2. */
  readonly swap: tf.Tensor2D;
}

/**
 * x [B, T, D] → each row turned by its position's angles. The swap of halves is a product with a matrix of 0 and ±1
 * (exact, and a fast kernel), because slices and concatenations of small rows are slow on wasm.
 */
export function rotate(x: tf.Tensor3D, { cosines, sines, swap }: RotaryTables): tf.Tensor3D {
  return tf.tidy(() => {
    const swapped = tf.reshape(tf.matMul(asRows(x), swap), x.shape);
    return tf.add(tf.mul(x, cosines), tf.mul(swapped, sines));
  });
}

/** The transpose of `rotate`, which takes gradients back. */
export function rotateBack(x: tf.Tensor3D, { cosines, sines, swap }: RotaryTables): tf.Tensor3D {
  return tf.tidy(() => {
    // swapᵀ = −swap
    const swapped = tf.reshape(tf.matMul(asRows(tf.mul<tf.Tensor3D>(x, sines)), swap), x.shape);
    return tf.sub(tf.mul(x, cosines), swapped);
  });
}

const asRows = (x: tf.Tensor3D): tf.Tensor2D => tf.reshape(x, [x.shape[0] * x.shape[1], x.shape[2]]);
