import * as tf from "@tensorflow/tfjs-core";
import { checkedKernel } from "../backend/wasm-memory.ts";

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
