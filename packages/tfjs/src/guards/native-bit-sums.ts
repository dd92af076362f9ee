import * as tf from "@tensorflow/tfjs-core";
import { fastStream } from "@periodic-eval/core/random";

/** The part of tfjs-node's backend that runs operations of TensorFlow on types that TensorFlow.js does not know. */
interface NativeBackend {
  getInputTensorIds(tensors: readonly tf.Tensor[]): number[];
  readonly binding: {
    readonly TF_FLOAT: number;
    readonly TF_INT32: number;
    readonly TF_INT64: number;
    readonly TF_ATTR_BOOL: number;
    readonly TF_ATTR_TYPE: number;
    executeOp(name: string, attributes: Attribute[], inputs: number[], outputs: number): { id: number }[];
    createTensor(shape: number[], type: number, values: Int32Array): number;
    deleteTensor(id: number): void;
    tensorDataSync(id: number): BigInt64Array;
  };
}

interface Attribute {
  readonly name: string;
  readonly type: number;
  readonly value: number | boolean;
}

/** The number of TensorFlow's type uint32. */
const uint32 = 22;

/** Values whose 64-bit products are in memory at once. */
const pieceSize = 2 ** 22;

/** Returns the backend if it runs operations of TensorFlow, else null. */
export function nativeBackend(): NativeBackend | null {
  if (tf.getBackend() !== "tensorflow") return null;
  const backend = tf.backend() as unknown as Partial<NativeBackend>;
  return typeof backend.binding?.executeOp === "function" ? (backend as NativeBackend) : null;
}

/**
 * Computes sums over the bits of a float32 tensor on its device: Σ_r a[r] · Σ_c b[c] · x[r, c] modulo 2⁶⁴ per piece of 4 million
 * values, where x are the bits as unsigned integers and a and b are odd pseudorandom integers of 64 bits (multilinear hashing,
 * Lemire and Kaser 2014). Integer sums are exact in any order. As a and b are odd, every change of a single value changes a sum;
 * several changes cancel with a probability of about 2⁻³².
 *
 * Every operation has a kernel for GPUs. Those for int32 do not, so the types are uint32 and int64.
 */
export function bitSums(backend: NativeBackend, tensor: tf.Tensor): BigInt64Array {
  const columns = tensor.shape.at(-1) || 1;
  const rows = tensor.size / columns;
  const rowsAtOnce = Math.max(1, Math.floor(pieceSize / columns));
  const sums = new BigInt64Array(Math.ceil(rows / rowsAtOnce));
  const matrix = tf.reshape(tensor, [rows, columns]) as tf.Tensor2D;
  for (let piece = 0; piece < sums.length; piece++) {
    const from = piece * rowsAtOnce;
    const part = tf.slice2d(matrix, [from, 0], [Math.min(rowsAtOnce, rows - from), columns]);
    sums[piece] = bitSum(backend, part);
    part.dispose();
  }
  matrix.dispose();
  return sums;
}

function bitSum(backend: NativeBackend, matrix: tf.Tensor2D): bigint {
  const { binding } = backend;
  const { TF_FLOAT: float32, TF_INT32: int32, TF_INT64: int64 } = binding;
  const made: number[] = [];
  const keep = (id: number): number => {
    made.push(id);
    return id;
  };
  const type = (name: string, value: number) => ({ name, type: binding.TF_ATTR_TYPE, value });
  const run = (name: string, attributes: Attribute[], ...inputs: number[]): number =>
    keep(binding.executeOp(name, attributes, inputs, 1)[0]!.id);
  const times = (x: number, by: number) => run("Mul", [type("T", int64)], x, by);
  const factors = (name: string, count: number) =>
    keep(binding.createTensor([count], int64, factorsOf(name, count)));
  const sum = (x: number, axis: number) => {
    const keepDims = { name: "keep_dims", type: binding.TF_ATTR_BOOL, value: false };
    const axes = keep(binding.createTensor([1], int32, Int32Array.of(axis)));
    return run("Sum", [keepDims, type("T", int64), type("Tidx", int32)], x, axes);
  };
  try {
    const [rows, columns] = matrix.shape;
    const [values] = backend.getInputTensorIds([matrix]) as [number];
    const bits = run("Bitcast", [type("T", float32), type("type", uint32)], values);
    const wide = run("Cast", [type("SrcT", uint32), type("DstT", int64)], bits);
    const ofRows = sum(times(wide, factors("columns", columns)), 1);
    const total = sum(times(ofRows, factors("rows", rows)), 0);
    return binding.tensorDataSync(total)[0]!;
  } finally {
    for (const id of made) binding.deleteTensor(id);
  }
}

const streams = new Map<string, { readonly next: () => number; values: Int32Array }>();

/** Returns the first odd integers of 64 bits of a stream, as pairs of 32 bits, the lower first. */
export function factorsOf(name: string, count: number): Int32Array {
  const stream = streams.get(name) ?? { next: fastStream(`bit sums ${name}`), values: new Int32Array(0) };
  streams.set(name, stream);
  const { next, values: old } = stream;
  if (old.length < 2 * count) {
    stream.values = new Int32Array(2 * count);
    stream.values.set(old);
    for (let i = old.length; i < 2 * count; i++) {
      const word = Math.floor(next() * 2 ** 32) | 0;
      stream.values[i] = i % 2 === 0 ? word | 1 : word;
    }
  }
  return stream.values.slice(0, 2 * count);
}
