import type { AddedKernel } from "@periodic-eval/kernels";
import * as tf from "@tensorflow/tfjs-core";
import { isOnDevice } from "@periodic-eval/tfjs";
import { checkedKernel } from "../backend/wasm-memory.ts";
import { isNative } from "./engine-memory.ts";

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

/** A kernel of `@periodic-eval/kernels`: a [batch, M, K], b [batch, K, N] → [batch, M, N], with N ≥ 8 and K ≥ 1. */
const smallProducts: AddedKernel = "PeriodicEvalSmallProducts";

/** Runs `batchMatMul` on wasm. */
function batched(a: tf.Tensor3D, b: tf.Tensor3D): tf.Tensor3D {
  const [, inner, columns] = b.shape;
  const isSmall = columns >= 8 && inner >= 1 && (a.shape[1] === 1 || inner * columns <= mostValues);
  if (!isSmall || tf.getKernel(smallProducts, "wasm") === undefined) return batchedByViews(a, b);
  return tf.engine().runKernel(smallProducts, { a, b }) as tf.Tensor3D;
}

const eachTransposed = (x: tf.Tensor3D): tf.Tensor3D => tf.transpose(x, [0, 2, 1]);

/*
 * The batched product on wasm. The backend's own kernel computes a batch of several matrices in a plain loop (2 GFLOP/s),
 * and a batch of one with XNNPACK. This kernel calls it for each pair of matrices separately, through views into the
 * operands' memory, without copies.
 */

const kernelName = "PeriodicEvalBatchMatMul";

/** The part of the backend that this kernel uses, in `@tensorflow/tfjs-backend-wasm` 4.22. */
interface WasmBackend {
  readonly wasm: {
    cwrap(name: string, returns: null, args: readonly string[]): (...args: unknown[]) => void;
    readonly tfjs: {
      registerTensor(id: number, size: number, memoryOffset: number): void;
      disposeData(id: number): void;
    };
  };
  readonly dataIdMap: { get(dataId: object): { readonly memoryOffset: number } };
  dataIdNextNumber: number;
  makeOutput(shape: readonly number[], dtype: "float32"): tf.TensorInfo;
}

type Multiply = (
  aId: number,
  aShape: Uint8Array,
  aRank: number,
  bId: number,
  bShape: Uint8Array,
  bRank: number,
  transposeA: number,
  transposeB: number,
  outId: number,
) => void;

const multipliers = new WeakMap<object, Multiply>();

/** For each i: a[i] [M, K] · b[i] [K, N] → [batch, M, N]. */
export function batchedByViews(a: tf.Tensor3D, b: tf.Tensor3D): tf.Tensor3D {
  if (tf.getKernel(kernelName, "wasm") === undefined) {
    tf.registerKernel(checkedKernel({ kernelName, backendName: "wasm", kernelFunc: run }));
  }
  return tf.engine().runKernel(kernelName, { a, b }) as tf.Tensor3D;
}

const run: tf.KernelFunc = ({ inputs, backend: engine }) => {
  const { a, b } = inputs as { a: tf.TensorInfo; b: tf.TensorInfo };
  const backend = engine as WasmBackend;
  const [batch, rows, inner] = a.shape as [number, number, number];
  const columns = b.shape[2]!;
  const out = backend.makeOutput([batch, rows, columns], "float32");
  const multiply = multiplierOf(backend);
  const aShape = shapeBytes(rows, inner);
  const bShape = shapeBytes(inner, columns);
  const startOf = ({ dataId }: tf.TensorInfo) => backend.dataIdMap.get(dataId).memoryOffset;
  const starts = [startOf(a), startOf(b), startOf(out)] as const;
  const sizes = [rows * inner, inner * columns, rows * columns] as const;
  const { tfjs } = backend.wasm;
  for (let i = 0; i < batch; i++) {
    // Each id is used once, because it is the key of XNNPACK's cache of packed operands.
    const ids = [backend.dataIdNextNumber++, backend.dataIdNextNumber++, backend.dataIdNextNumber++] as const;
    for (let k = 0; k < 3; k++) tfjs.registerTensor(ids[k]!, sizes[k]!, starts[k]! + 4 * i * sizes[k]!);
    multiply(ids[0], aShape, 3, ids[1], bShape, 3, 0, 0, ids[2]);
    for (const id of ids) tfjs.disposeData(id);
  }
  return out;
};

function multiplierOf(backend: WasmBackend): Multiply {
  let multiply = multipliers.get(backend);
  if (multiply === undefined) {
    const types = ["number", "array", "number", "number", "array", "number", "number", "number", "number"];
    multiply = backend.wasm.cwrap("BatchMatMul", null, types);
    multipliers.set(backend, multiply);
  }
  return multiply;
}

const shapeBytes = (rows: number, columns: number) => new Uint8Array(Int32Array.of(1, rows, columns).buffer);
