import { isOnDevice } from "@periodic-eval/core/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import { smallProductsKernel } from "../wasm-kernels/added-kernels.ts";
import { isNative } from "./engine-memory.ts";
import { batchedByViews } from "./wasm-batch.ts";

/*
 * Matrix products in the fastest form of each backend. On wasm only an untransposed product of two matrices reaches the
 * fast kernel (20–30 GFLOP/s instead of 2), so operands are transposed first and batches run one matrix at a time. Other
 * backends are fastest with their own flags and batches. See docs/decisions/wasm-kernels.md.
 */

const isWasm = () => tf.getBackend() === "wasm";

/** a [M, K], b [N, K] → a·bᵀ [M, N]. */
export function matMulTransposedB(a: tf.Tensor2D, b: tf.Tensor2D): tf.Tensor2D {
  if (isWasm()) return tf.matMul(a, tf.transpose(b));
  // On native TensorFlow's CPU few rows times a large transposed matrix take up to ten times as long as the swapped product.
  const [rows] = a.shape;
  if (isNative() && !isOnDevice() && rows > 1 && rows <= 16 && b.shape[0] >= 16 * rows) {
    return tf.tidy(() => tf.transpose(tf.matMul(b, a, false, true)));
  }
  return tf.matMul(a, b, false, true);
}

/** Returns `matMulTransposedB` for many `a`; on wasm b is transposed once, into a tensor of the surrounding `tf.tidy`. */
export function timesTransposed(b: tf.Tensor2D): (a: tf.Tensor2D) => tf.Tensor2D {
  if (!isWasm()) return (a) => matMulTransposedB(a, b);
  const bTransposed = tf.transpose(b);
  return (a) => tf.matMul(a, bTransposed);
}

/** a [K, M], b [K, N] → aᵀ·b [M, N]. */
export function matMulTransposedA(a: tf.Tensor2D, b: tf.Tensor2D): tf.Tensor2D {
  return isWasm() ? tf.matMul(tf.transpose(a), b) : tf.matMul(a, b, true, false);
}

/** Sums over rows: x [N, D] → [D]. On wasm a product does this, because summing over the first axis is 20 times slower. */
export function sumOfRows(x: tf.Tensor2D): tf.Tensor1D {
  if (!isWasm()) return tf.sum(x, 0);
  return tf.tidy(() => tf.reshape(tf.matMul(tf.ones([1, x.shape[0]]), x), [x.shape[1]]));
}

/** For each i: a[i] [M, K] · b[i] [K, N] → [batch, M, N]. */
export function batchMatMul(a: tf.Tensor3D, b: tf.Tensor3D): tf.Tensor3D {
  return isWasm() ? batched(a, b) : tf.matMul(a, b);
}

/** For each i: a[i] [M, K] · b[i]ᵀ, b[i] [N, K] → [batch, M, N]. */
export function batchMatMulTransposedB(a: tf.Tensor3D, b: tf.Tensor3D): tf.Tensor3D {
  return isWasm() ? tf.tidy(() => batched(a, eachTransposed(b))) : tf.matMul(a, b, false, true);
}

/** For each i: a[i]ᵀ, a[i] [K, M] · b[i] [K, N] → [batch, M, N]. */
export function batchMatMulTransposedA(a: tf.Tensor3D, b: tf.Tensor3D): tf.Tensor3D {
  return isWasm() ? tf.tidy(() => batched(eachTransposed(a), b)) : tf.matMul(a, b, true, false);
}

/** Values of the largest right operand that is faster without being packed. For one row packing never pays. */
const mostValues = 2 ** 14;

/** Runs `batchMatMul` on wasm. */
function batched(a: tf.Tensor3D, b: tf.Tensor3D): tf.Tensor3D {
  const [, inner, columns] = b.shape;
  const isSmall = columns >= 8 && inner >= 1 && (a.shape[1] === 1 || inner * columns <= mostValues);
  if (!isSmall || tf.getKernel(smallProductsKernel, "wasm") === undefined) return batchedByViews(a, b);
  return tf.engine().runKernel(smallProductsKernel, { a, b }) as tf.Tensor3D;
}

const eachTransposed = (x: tf.Tensor3D): tf.Tensor3D => tf.transpose(x, [0, 2, 1]);
