import * as tf from "@tensorflow/tfjs-core";
import { checkKeys } from "../internal/check-keys.ts";
import { checkWord } from "../internal/check-word.ts";
import { createHasher, hashBytes } from "../random/hash.ts";
import type { NamedWeight } from "./causal-lm.ts";

/** Backends whose tensors lie in this process's memory; all others keep them on a device. */
const hostBackends: readonly string[] = ["cpu", "wasm", "tensorflow"];

export interface FingerprintOptions {
  /**
   * `"exact"` hashes every byte; `"approximate"` reduces on the device. Default: exact where the backend keeps tensors
   * in host memory (cpu, wasm, tfjs-node), else approximate. Exact on a GPU downloads every weight.
   */
  readonly method?: "exact" | "approximate";
}

/**
 * A text that changes when a weight does: names, types, shapes, order and values count.
 *
 * Exact: a hash over the bytes; one bit anywhere shows.
 *
 * Approximate (`approximate:` leads the text): per weight six float32 reductions on the device: sum, sum of absolutes,
 * sum of squares, least, largest, and a sum weighted by position. They see swapped weights, swapped entries and training
 * steps. They miss changes that vanish in the rounding of such sums, one ulp of one entry of a large weight for example,
 * and a change built to cancel in all six.
 *
 * Memory: nothing is kept; the largest weight is held twice for a moment where the backend downloads a copy.
 *
 * @throws PeriodicEvalError `config` for an unknown option or method.
 */
export async function fingerprintWeights(
  weights: readonly NamedWeight[],
  options: FingerprintOptions = {},
): Promise<string> {
  checkKeys("fingerprintWeights", options, ["method"]);
  if (options.method !== undefined) checkFingerprint("fingerprintWeights method", options.method);
  const method = options.method ?? (hostBackends.includes(tf.getBackend()) ? "exact" : "approximate");
  const hasher = createHasher();
  const bytesOf = method === "exact" ? exactBytes : reducedBytes;
  for (const weight of weights) {
    const tensor = weight.read();
    const facts = [weight.name, tensor.dtype, tensor.shape, hashBytes(await bytesOf(tensor))];
    hasher.update(new TextEncoder().encode(JSON.stringify(facts)));
  }
  const digest = hasher.digest();
  return method === "exact" ? digest : `approximate:${digest}`;
}

/** Another word must not quietly be the approximate method. */
export function checkFingerprint(where: string, method: unknown): void {
  checkWord(where, method, ["exact", "approximate"]);
}

async function exactBytes(tensor: tf.Tensor): Promise<Uint8Array> {
  const values = hostBackends.includes(tf.getBackend()) ? tensor.dataSync() : await tensor.data();
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

async function reducedBytes(tensor: tf.Tensor): Promise<Uint8Array> {
  const reductions = tf.tidy(() => {
    const columns = tensor.shape.at(-1) || 1;
    const matrix = tf.reshape(tf.cast(tensor, "float32"), [tensor.size / columns, columns]);
    // Cosines of unequal frequency, so that no two positions of a row or column weigh the same.
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
  try {
    const values = await reductions.data();
    return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  } finally {
    reductions.dispose();
  }
}
