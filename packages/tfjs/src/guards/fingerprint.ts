import * as tf from "@tensorflow/tfjs-core";
import * as z from "zod";
import { parseOptions } from "@periodic-eval/contracts/options";
import { createHasher, hashBytes } from "@periodic-eval/core/random";
import { isOnDevice } from "../batching/device.ts";
import type { NamedWeight } from "../causal-lm/causal-lm.ts";
import { bitSums, nativeBackend } from "./native-bit-sums.ts";
import { webGpuBackend, webGpuBitSums } from "./webgpu-bit-sums.ts";

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
