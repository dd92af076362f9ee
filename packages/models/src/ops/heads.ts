import * as tf from "@tensorflow/tfjs-core";

/** B sequences of T tokens; H query heads and G key-value heads (H is a multiple of G) of D dimensions each. */
export interface AttentionShape {
  readonly batch: number;
  readonly length: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
}

/** [B·T, heads·D] → [B·heads, T, D]. */
export const byHead = (x: tf.Tensor2D, shape: AttentionShape, heads: number): tf.Tensor3D =>
  headsFirst(x, shape, heads, [0, 2, 1, 3]);

/** [B·T, heads·D] → [B·heads, D, T]. */
export const byHeadTransposed = (x: tf.Tensor2D, shape: AttentionShape, heads: number): tf.Tensor3D =>
  headsFirst(x, shape, heads, [0, 2, 3, 1]);

/** Permutes row, token, head and dimension to `order`. */
function headsFirst(
  x: tf.Tensor2D,
  { batch, length, headDim }: AttentionShape,
  heads: number,
  order: readonly [0, 2, 1, 3] | readonly [0, 2, 3, 1],
): tf.Tensor3D {
  const ofCell = order[2] === 1 ? [length, headDim] : [headDim, length];
  const split = [batch * heads, ...ofCell] as [number, number, number];
  // For one token the order of the values does not change.
  if (length === 1) return tf.reshape(x, split);
  return tf.reshape(tf.transpose(tf.reshape(x, [batch, length, heads, headDim]), [...order]), split);
}

/** [B·heads, T, D] → [B·T, heads·D]. */
export function byToken(
  x: tf.Tensor3D,
  { batch, length, headDim }: AttentionShape,
  heads: number,
): tf.Tensor2D {
  const joined = [batch * length, heads * headDim] as [number, number];
  if (length === 1) return tf.reshape(x, joined);
  return tf.reshape(tf.transpose(tf.reshape(x, [batch, heads, length, headDim]), [0, 2, 1, 3]), joined);
}

/** [B·H, T, X] → [B·G, H/G·T, X]. */
export function inGroups(
  x: tf.Tensor3D,
  { batch, heads, keyValueHeads, length }: AttentionShape,
): tf.Tensor3D {
  return tf.reshape(x, [batch * keyValueHeads, (heads / keyValueHeads) * length, x.shape[2]]);
}

/** [B·G, H/G·T, X] → [B·H, T, X]. */
export function outOfGroups(x: tf.Tensor3D, { batch, heads, length }: AttentionShape): tf.Tensor3D {
  return tf.reshape(x, [batch * heads, length, x.shape[2]]);
}
