import * as tf from "@tensorflow/tfjs-core";
import * as z from "zod";
import { parseOptions } from "@periodic-eval/contracts/options";
import { createHasher, hashBytes, fastStream } from "@periodic-eval/core/random";
import { isOnDevice } from "../batching/engine-memory.ts";
import type { NamedWeight } from "../causal-lm/causal-lm.ts";

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
function nativeBackend(): NativeBackend | null {
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
function bitSums(backend: NativeBackend, tensor: tf.Tensor): BigInt64Array {
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
function factorsOf(name: string, count: number): Int32Array {
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

export interface FingerprintOptions {
  /**
   * `"exact"` hashes every byte; `"approximate"` computes reductions on the device. Default: exact if the backend keeps tensors
   * in host memory (cpu, wasm, native TensorFlow without a GPU), else approximate. On a GPU, exact downloads every weight.
   */
  readonly method?: "exact" | "approximate";
}

const optionsSchema = z.strictObject({
  method: z.enum(["exact", "approximate"]).optional(),
} satisfies Record<keyof FingerprintOptions, z.ZodType>);

/**
 * Returns a string that changes when a weight changes. Names, types, shapes, order and values count.
 *
 * Exact: a hash of the bytes, which changes with any single bit.
 *
 * Approximate (the string begins with `approximate:`): reductions per weight on the device.
 * - On native TensorFlow and WebGPU: integer sums over the bits of float32 weights. They change with any bit of a single entry;
 *   several changes cancel with a probability of about 2⁻³².
 * - On other backends: six float32 reductions. They detect swapped weights, swapped entries and training steps. They miss changes
 *   below the rounding of such sums, such as one ulp of one entry of a large weight, and changes constructed to cancel in all six.
 *
 * Keeps no tensors. While a backend downloads a copy, the largest weight is in memory twice.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export async function fingerprintWeights(
  weights: readonly NamedWeight[],
  options: FingerprintOptions = {},
): Promise<string> {
  parseOptions("fingerprintWeights options", optionsSchema, options);
  const method = options.method ?? (isOnDevice() ? "approximate" : "exact");
  const hasher = createHasher();
  const read = method === "exact" ? exactBytes : reducedBytes;
  for (const weight of weights) {
    const tensor = weight.read();
    const facts = [weight.name, tensor.dtype, tensor.shape, hashBytes(await read(tensor))];
    hasher.update(new TextEncoder().encode(JSON.stringify(facts)));
  }
  const digest = hasher.digest();
  return method === "exact" ? digest : `approximate:${digest}`;
}

async function exactBytes(tensor: tf.Tensor): Promise<Uint8Array> {
  return bytesOf(isOnDevice() ? await tensor.data() : tensor.dataSync());
}

async function reducedBytes(tensor: tf.Tensor): Promise<Uint8Array> {
  const [native, webGpu] = tensor.dtype === "float32" ? [nativeBackend(), webGpuBackend()] : [];
  if (native) return bytesOf(bitSums(native, tensor));
  const reductions = webGpu ? webGpuBitSums(webGpu, tensor) : floatReductions(tensor);
  try {
    return bytesOf(await reductions.data());
  } finally {
    reductions.dispose();
  }
}

/** Returns sum, sum of absolute values, sum of squares, minimum, maximum, and a sum weighted by position. */
function floatReductions(tensor: tf.Tensor): tf.Tensor {
  return tf.tidy(() => {
    const columns = tensor.shape.at(-1) || 1;
    const matrix = tf.reshape(tf.cast(tensor, "float32"), [tensor.size / columns, columns]);
    // Cosines of different frequencies, so that no two positions of a row or column have the same weight.
    const byColumn = tf.cos(tf.mul(tf.range(0, columns), 1.618));
    const byRow = tf.cos(tf.mul(tf.range(0, tensor.size / columns), 2.414));
    return tf.stack([
      tf.sum(matrix),
      tf.sum(tf.abs(matrix)),
      tf.sum(tf.square(matrix)),
      tf.min(matrix),
      tf.max(matrix),
      tf.sum(tf.mul(tf.sum(tf.mul(matrix, byColumn), 1), byRow)),
    ]);
  });
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** The part of tfjs-backend-webgpu that runs shaders. */
interface WebGpuBackend {
  runWebGPUProgram(
    program: object,
    inputs: readonly tf.Tensor[],
    dtype: "int32",
    uniforms: readonly { readonly type: "int32"; readonly data: readonly number[] }[],
  ): tf.TensorInfo;
}

/** Sums per tensor, each computed by one thread. */
const sumCount = 1024;
const threadsPerGroup = 64;

/** Returns the backend if it runs WebGPU's shaders, else null. */
function webGpuBackend(): WebGpuBackend | null {
  if (tf.getBackend() !== "webgpu") return null;
  const backend = tf.backend() as unknown as Partial<WebGpuBackend>;
  return typeof backend.runWebGPUProgram === "function" ? (backend as WebGpuBackend) : null;
}

/**
 * Sums hashes of the bits of a float32 tensor on the GPU, modulo 2³²: sum s is over the entries s, s + 1024, s + 2048 … The hash is
 * MurmurHash3's `fmix32` of the bits plus a multiple of the index. It is a bijection of the bits, so every change of a single value
 * changes its sum; several changes in a sum cancel with a probability of about 2⁻³².
 *
 * @returns int32 [1024], which the caller disposes.
 */
function webGpuBitSums(backend: WebGpuBackend, tensor: tf.Tensor): tf.Tensor {
  const program = {
    variableNames: ["x"],
    outputShape: [sumCount],
    dispatchLayout: { x: [0] },
    dispatch: [sumCount / threadsPerGroup, 1, 1],
    workgroupSize: [threadsPerGroup, 1, 1],
    shaderKey: "periodic_eval_bit_sums",
    uniforms: "count : i32,",
    getUserCode: () => shader,
  };
  // The entries in one dimension, so that tensors of all shapes share a shader.
  const flat = tf.reshape(tensor, [tensor.size]);
  const count = { type: "int32", data: [tensor.size] } as const;
  try {
    return tf.engine().makeTensorFromTensorInfo(backend.runWebGPUProgram(program, [flat], "int32", [count]));
  } finally {
    flat.dispose();
  }
}

const shader = `
  fn fmix32(bits : u32) -> u32 {
    var h = bits;
    h = (h ^ (h >> 16u)) * 0x85ebca6bu;
    h = (h ^ (h >> 13u)) * 0xc2b2ae35u;
    return h ^ (h >> 16u);
  }
  fn main(index : i32) {
    var sum = 0u;
    for (var i = index; i < uniforms.count; i += ${sumCount}) {
      sum += fmix32(bitcast<u32>(x[i]) + u32(i) * 0x9e3779b9u);
    }
    if (index < ${sumCount}) {
      result[index] = bitcast<i32>(sum);
    }
  }`;
