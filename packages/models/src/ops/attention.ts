import * as tf from "@tensorflow/tfjs-core";
import { hasNativeKernels, runNative } from "./native.ts";
import { differentiable } from "./differentiable.ts";
import { batchMatMul, batchMatMulTransposedA, batchMatMulTransposedB } from "./mat-mul.ts";
import { tanh, tanhSlope } from "./arithmetic.ts";

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

export interface AttentionTables {
  /** The cosines and sines of `query` include the scale of the scores, so that scaling costs nothing. Null: no rotation. */
  readonly rotary: { readonly query: RotaryTables; readonly key: RotaryTables } | null;
  /** Multiplies the scores. */
  readonly scale: number;
  /** Scores s become cap · tanh(s / cap). Null: no cap. */
  readonly softCap: number | null;
  /** float32 [T, T] or [B·H, T, T], added to the scores: 0 if the row's token attends to the column's, else very negative. */
  readonly mask: tf.Tensor;
}

/**
 * Computes causal attention with rotary positions. query [B·T, H·D], key and value [B·T, G·D] → [B·T, H·D].
 *
 * Folds grouped queries into rows: query head h uses key-value head ⌊h / (H/G)⌋, so the H/G heads of a group are adjacent,
 * and one product [H/G·T, D]·[D, T] serves them all, forward and backward, without repeated keys.
 */
export function attention(
  [query, key, value]: readonly [tf.Tensor2D, tf.Tensor2D, tf.Tensor2D],
  { rotary, scale, softCap, mask }: AttentionTables,
  shape: AttentionShape,
): tf.Tensor2D {
  return differentiable([query, key, value], (save) => {
    const queries = byHead(query, shape, shape.heads);
    const keys = byHead(key, shape, shape.keyValueHeads);
    const q = inGroups(rotary === null ? tf.mul(queries, scale) : rotate(queries, rotary.query), shape);
    const k = rotary === null ? keys : rotate(keys, rotary.key);
    const v = byHead(value, shape, shape.keyValueHeads);
    const scores = outOfGroups(batchMatMulTransposedB(q, k), shape);
    const bounded = softCap === null ? null : tanh(tf.div<tf.Tensor3D>(scores, softCap));
    const capped = bounded === null ? scores : tf.mul<tf.Tensor3D>(bounded, softCap!);
    const weights = inGroups(maskedSoftmax(capped, mask), shape);
    const tables = rotary === null ? [] : [...listOf(rotary.query), ...listOf(rotary.key)];
    save([q, k, v, weights, ...tables, ...(bounded === null ? [] : [bounded])]);
    return {
      value: byToken(outOfGroups(batchMatMul(weights, v), shape), shape, shape.heads),
      backward(gradient, [q, k, v, weights, ...rest]) {
        const saved = { q, k, v, weights } as Saved;
        const bounded = softCap === null ? null : (rest.pop() as tf.Tensor3D);
        const ofScores = scoreGradient(gradient, saved, bounded, shape);
        const ofQuery = outOfGroups(batchMatMul(ofScores.scores, saved.k), shape);
        const ofKey = batchMatMulTransposedA(ofScores.scores, saved.q);
        return [
          byToken(
            rotary === null ? tf.mul(ofQuery, scale) : rotateBack(ofQuery, tablesOf(rest.slice(0, 3))),
            shape,
            shape.heads,
          ),
          byToken(
            rotary === null ? ofKey : rotateBack(ofKey, tablesOf(rest.slice(3))),
            shape,
            shape.keyValueHeads,
          ),
          byToken(ofScores.value, shape, shape.keyValueHeads),
        ];
      },
    };
  });
}

interface Saved {
  readonly q: tf.Tensor3D;
  readonly k: tf.Tensor3D;
  readonly v: tf.Tensor3D;
  readonly weights: tf.Tensor3D;
}

/** Returns the gradients of the values and, in groups, of the scores before the soft cap. */
function scoreGradient(
  gradient: tf.Tensor2D,
  { v, weights }: Saved,
  bounded: tf.Tensor3D | null,
  shape: AttentionShape,
): { value: tf.Tensor3D; scores: tf.Tensor3D } {
  const ofOutput = inGroups(byHead(gradient, shape, shape.heads), shape);
  const scores = softmaxGradient(batchMatMulTransposedB(ofOutput, v), weights);
  return {
    value: batchMatMulTransposedA(weights, ofOutput),
    scores: bounded === null ? scores : tf.mul(scores, inGroups(tanhSlope(bounded), shape)),
  };
}

/** scores [A, T, P] → softmax(scores + mask). */
function maskedSoftmax(scores: tf.Tensor3D, mask: tf.Tensor): tf.Tensor3D {
  if (hasNativeKernels()) return runNative("PeriodicMaskedSoftmax", [scores, mask], {}) as tf.Tensor3D;
  return tf.softmax(tf.add<tf.Tensor3D>(scores, mask));
}

/** The gradient of the weights P [A, T, P] → that of the scores: dS = P ∘ (dP − rowsum(dP ∘ P)). */
function softmaxGradient(gradient: tf.Tensor3D, weights: tf.Tensor3D): tf.Tensor3D {
  if (hasNativeKernels()) return runNative("PeriodicSoftmaxGradient", [gradient, weights], {}) as tf.Tensor3D;
  const along = tf.sum(tf.mul(gradient, weights), -1, true);
  return tf.mul<tf.Tensor3D>(weights, tf.sub(gradient, along));
}

const listOf = ({ cosines, sines, swap }: RotaryTables): tf.Tensor[] => [cosines, sines, swap];

function tablesOf(tensors: tf.Tensor[]): RotaryTables {
  const [cosines, sines, swap] = tensors as [tf.Tensor, tf.Tensor, tf.Tensor2D];
  return { cosines, sines, swap };
}
