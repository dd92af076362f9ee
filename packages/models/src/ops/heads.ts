import * as tf from "@tensorflow/tfjs-core";

/** B sequences of T tokens, H query heads, G key-value heads (H a multiple of G) of D dimensions each. */
export interface AttentionShape {
  readonly batch: number;
  readonly length: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
}

/** [B·T, heads·D] → [B·heads, T, D]. */
export function byHead(
  x: tf.Tensor2D,
  { batch, length, headDim }: AttentionShape,
  heads: number,
): tf.Tensor3D {
  const split = [batch * heads, length, headDim] as [number, number, number];
  // The same numbers in the same order.
  if (length === 1) return tf.reshape(x, split);
  return tf.reshape(tf.transpose(tf.reshape(x, [batch, length, heads, headDim]), [0, 2, 1, 3]), split);
}

/** [B·T, heads·D] → [B·heads, D, T]. */
export function byHeadTransposed(
  x: tf.Tensor2D,
  { batch, length, headDim }: AttentionShape,
  heads: number,
): tf.Tensor3D {
  const split = [batch * heads, headDim, length] as [number, number, number];
  if (length === 1) return tf.reshape(x, split);
  return tf.reshape(tf.transpose(tf.reshape(x, [batch, length, heads, headDim]), [0, 2, 3, 1]), split);
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
