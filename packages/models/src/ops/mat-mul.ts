import * as tf from "@tensorflow/tfjs-core";
import { batchedByViews } from "./wasm-batch.ts";

/*
 * Matrix products in the form that each engine is fast at. On wasm only an untransposed product of two matrices reaches
 * the fast kernel (20–30 GFLOP/s against 2): there, operands are transposed first and batches are walked one by one.
 * Elsewhere the engine's own flags and batches are best. Measured in docs/decisions/2026-11-21-wasm-kernels.md.
 */

const isWasm = () => tf.getBackend() === "wasm";

/** a [M, K], b [N, K] → a·bᵀ [M, N]. */
export function matMulTransposedB(a: tf.Tensor2D, b: tf.Tensor2D): tf.Tensor2D {
  if (isWasm()) return tf.matMul(a, transposed(b));
  // Native's product of few rows with a large transposed matrix takes up to ten times as long as the other way round.
  const [rows] = a.shape;
  if (tf.getBackend() === "tensorflow" && rows > 1 && rows <= 16 && b.shape[0] >= 16 * rows) {
    return tf.tidy(() => tf.transpose(tf.matMul(b, a, false, true)));
  }
  return tf.matMul(a, b, false, true);
}

/** As `matMulTransposedB`, of many a: what wasm turns first is turned once, and is the surrounding `tf.tidy`'s. */
export function timesTransposed(b: tf.Tensor2D): (a: tf.Tensor2D) => tf.Tensor2D {
  if (!isWasm()) return (a) => matMulTransposedB(a, b);
  const turned = transposed(b);
  return (a) => tf.matMul(a, turned);
}

/** a [K, M], b [K, N] → aᵀ·b [M, N]. */
export function matMulTransposedA(a: tf.Tensor2D, b: tf.Tensor2D): tf.Tensor2D {
  return isWasm() ? tf.matMul(transposed(a), b) : tf.matMul(a, b, true, false);
}

/** x [M, N] → xᵀ [N, M]. */
export function transposed(x: tf.Tensor2D): tf.Tensor2D {
  const [rows, columns] = x.shape;
  const block = isWasm() && rows >= 256 ? blocks.find((size) => rows % size === 0) : undefined;
  if (block === undefined) return tf.transpose(x);
  // The kernel walks down columns, which at strides of a power of two evicts its own cache lines. In blocks of few rows
  // it stays in the cache; the second transposition moves whole blocks of a column. 3 to 6 times as fast.
  return tf.tidy(() => {
    const inBlocks = tf.transpose(tf.reshape(x, [rows / block, block, columns]), [0, 2, 1]);
    return tf.reshape(tf.transpose(inBlocks, [1, 0, 2]), [columns, rows]);
  });
}

const blocks = [64, 32, 16];

/** The sum over rows: x [N, D] → [D]. On wasm as a product: it sums over the first axis 20 times more slowly. */
export function sumOfRows(x: tf.Tensor2D): tf.Tensor1D {
  if (!isWasm()) return tf.sum(x, 0);
  return tf.tidy(() => tf.reshape(tf.matMul(tf.ones([1, x.shape[0]]), x), [x.shape[1]]));
}

/** For each i: a[i] [M, K] · b[i] [K, N] → [batch, M, N]. */
export function batchMatMul(a: tf.Tensor3D, b: tf.Tensor3D): tf.Tensor3D {
  return isWasm() ? batchedByViews(a, b) : tf.matMul(a, b);
}

/** For each i: a[i] [M, K] · b[i]ᵀ, b[i] [N, K] → [batch, M, N]. */
export function batchMatMulTransposedB(a: tf.Tensor3D, b: tf.Tensor3D): tf.Tensor3D {
  return isWasm() ? tf.tidy(() => batchedByViews(a, eachTransposed(b))) : tf.matMul(a, b, false, true);
}

/** For each i: a[i]ᵀ, a[i] [K, M] · b[i] [K, N] → [batch, M, N]. */
export function batchMatMulTransposedA(a: tf.Tensor3D, b: tf.Tensor3D): tf.Tensor3D {
  return isWasm() ? tf.tidy(() => batchedByViews(eachTransposed(a), b)) : tf.matMul(a, b, true, false);
}

const eachTransposed = (x: tf.Tensor3D): tf.Tensor3D => tf.transpose(x, [0, 2, 1]);
