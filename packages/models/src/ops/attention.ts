import * as tf from "@tensorflow/tfjs-core";
import { differentiable } from "./differentiable.ts";
import { batchMatMul, batchMatMulTransposedA, batchMatMulTransposedB } from "./mat-mul.ts";
import { rotate, rotateBack, type RotaryTables } from "./rotary.ts";

/** B sequences of T tokens, H query heads, G key-value heads (H a multiple of G) of D dimensions each. */
export interface AttentionShape {
  readonly batch: number;
  readonly length: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
}

export interface AttentionTables {
  readonly key: RotaryTables;
  /** Those of the keys with cosines and sines times the scale of the scores, so that scaling costs nothing. */
  readonly query: RotaryTables;
  /** float32 [T, T], added to the scores: 0 where row may see column, very negative where not. */
  readonly mask: tf.Tensor2D;
}

/**
 * Causal attention with rotary positions. query [B·T, H·D], key and value [B·T, G·D] → [B·T, H·D].
 *
 * Grouped queries are folded into rows: query head h reads key-value head ⌊h / (H/G)⌋, so the H/G heads of a group lie
 * side by side and one product [H/G·T, D]·[D, T] serves them all, forward and backward, with no repeated keys.
 */
export function attention(
  [query, key, value]: readonly [tf.Tensor2D, tf.Tensor2D, tf.Tensor2D],
  tables: AttentionTables,
  shape: AttentionShape,
): tf.Tensor2D {
  return differentiable([query, key, value], (keep) => {
    const q = inGroups(rotate(byHead(query, shape, shape.heads), tables.query), shape);
    const k = rotate(byHead(key, shape, shape.keyValueHeads), tables.key);
    const v = byHead(value, shape, shape.keyValueHeads);
    const scores = tf.add<tf.Tensor3D>(outOfGroups(batchMatMulTransposedB(q, k), shape), tables.mask);
    const weights = inGroups(tf.softmax(scores), shape);
    const { key: keyTables, query: queryTables } = tables;
    keep([q, k, v, weights, ...listOf(queryTables), ...listOf(keyTables)]);
    return {
      value: byToken(outOfGroups(batchMatMul(weights, v), shape), shape, shape.heads),
      backward: (gradient, kept) => backward(gradient, kept, shape),
    };
  });
}

function backward(gradient: tf.Tensor2D, kept: tf.Tensor[], shape: AttentionShape): tf.Tensor[] {
  const [q, k, v, weights] = kept as [tf.Tensor3D, tf.Tensor3D, tf.Tensor3D, tf.Tensor3D];
  const ofOutput = inGroups(byHead(gradient, shape, shape.heads), shape);
  const ofValue = batchMatMulTransposedA(weights, ofOutput);
  // Softmax: dS = P ∘ (dP − rowsum(dP ∘ P)).
  const ofWeights = batchMatMulTransposedB(ofOutput, v);
  const along = tf.sum(tf.mul(ofWeights, weights), -1, true);
  const ofScores = tf.mul<tf.Tensor3D>(weights, tf.sub(ofWeights, along));
  const ofQuery = rotateBack(outOfGroups(batchMatMul(ofScores, k), shape), tablesOf(kept.slice(4, 7)));
  const ofKey = rotateBack(batchMatMulTransposedA(ofScores, q), tablesOf(kept.slice(7, 10)));
  return [
    byToken(ofQuery, shape, shape.heads),
    byToken(ofKey, shape, shape.keyValueHeads),
    byToken(ofValue, shape, shape.keyValueHeads),
  ];
}

/** [B·T, heads·D] → [B·heads, T, D]. */
function byHead(x: tf.Tensor2D, { batch, length, headDim }: AttentionShape, heads: number): tf.Tensor3D {
  const perToken = tf.reshape(x, [batch, length, heads, headDim]);
  return tf.reshape(tf.transpose(perToken, [0, 2, 1, 3]), [batch * heads, length, headDim]);
}

/** [B·heads, T, D] → [B·T, heads·D]. */
function byToken(x: tf.Tensor3D, { batch, length, headDim }: AttentionShape, heads: number): tf.Tensor2D {
  const perHead = tf.reshape(x, [batch, heads, length, headDim]);
  return tf.reshape(tf.transpose(perHead, [0, 2, 1, 3]), [batch * length, heads * headDim]);
}

/** [B·H, T, X] → [B·G, H/G·T, X]. */
function inGroups(x: tf.Tensor3D, { batch, heads, keyValueHeads, length }: AttentionShape): tf.Tensor3D {
  return tf.reshape(x, [batch * keyValueHeads, (heads / keyValueHeads) * length, x.shape[2]]);
}

/** [B·G, H/G·T, X] → [B·H, T, X]. */
function outOfGroups(x: tf.Tensor3D, { batch, heads, length }: AttentionShape): tf.Tensor3D {
  return tf.reshape(x, [batch * heads, length, x.shape[2]]);
}

const listOf = ({ cosines, sines, swap }: RotaryTables): tf.Tensor[] => [cosines, sines, swap];

function tablesOf(tensors: tf.Tensor[]): RotaryTables {
  const [cosines, sines, swap] = tensors as [tf.Tensor2D, tf.Tensor2D, tf.Tensor2D];
  return { cosines, sines, swap };
}
