import { getThreadsCount } from "@tensorflow/tfjs-backend-wasm";
import * as tf from "@tensorflow/tfjs-core";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it, vi } from "vitest";
import { hasNative } from "../../../models/src/testing/backends.test-data.ts";
import { useBackend } from "../../../models/src/backend/use-backend.ts";

/** Prints the sums of bits of products of many sizes, and how many threads the backend has. */
const program = `
  import { useBackend } from "@periodic-eval/models";
  import { getThreadsCount } from "@tensorflow/tfjs-backend-wasm";
  import * as tf from "@tensorflow/tfjs-core";
  await useBackend({ backend: "wasm" });
  const bits = [];
  const products = [[1, 2048, 2049], [3, 1500, 1000], [257, 129, 127], [300, 301, 302], [64, 64, 64]];
  for (const [rows, inner, columns] of products) {
    const a = tf.randomUniform([rows, inner], -1, 1, "float32", 1);
    const b = tf.randomUniform([inner, columns], -1, 1, "float32", 2);
    for (const product of [tf.matMul(a, b), tf.fused.matMul({ a, b, bias: tf.ones([columns]) })]) {
      const values = new Int32Array((await product.data()).slice().buffer);
      bits.push(values.reduce((sum, value) => (31 * sum + value) | 0, 0));
    }
  }
  console.log(JSON.stringify({ threads: getThreadsCount(), bits }));
`;

async function run(threads: string): Promise<{ readonly threads: number; readonly bits: readonly number[] }> {
  const args = ["--import", "tsx", "-C", "@periodic-eval/source", "--input-type=module", "-e", program];
  const env = { ...process.env, PERIODIC_EVAL_WASM_THREADS: threads };
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: import.meta.dirname,
    env,
    timeout: 120_000,
  });
  return JSON.parse(stdout) as { threads: number; bits: number[] };
}

describe("matrix products on wasm", () => {
  it("have the same bits with any number of threads, and let the process end", async () => {
    const [single, two, three] = await Promise.all(["1", "2", "3"].map(run));
    expect([two!.threads, three!.threads]).toEqual([2, 3]);
    expect(two!.bits).toEqual(single!.bits);
    expect(three!.bits).toEqual(single!.bits);
  });

  it("stay on one thread if the program has started the backend, and keep its tensors", async () => {
    await import("@tensorflow/tfjs-backend-wasm");
    await tf.setBackend("wasm");
    const tensor = tf.tensor1d([1, 2, 3]);
    vi.stubEnv("PERIODIC_EVAL_WASM_THREADS", "2");
    await useBackend({ backend: "wasm" });
    expect([...tensor.dataSync()]).toEqual([1, 2, 3]);
    expect(getThreadsCount()).toBe(1);
    tensor.dispose();
  });

  it.each(["0", "1.5", "many", "65"])("are not computed with %s threads", async (threads) => {
    vi.stubEnv("PERIODIC_EVAL_WASM_THREADS", threads);
    const refused = { code: "config", where: "PERIODIC_EVAL_WASM_THREADS", got: JSON.stringify(threads) };
    await expect(useBackend({ backend: "wasm" })).rejects.toMatchObject(refused);
    // Native TensorFlow starts before wasm is asked.
    if (!hasNative) await expect(useBackend()).rejects.toMatchObject(refused);
  });
});
