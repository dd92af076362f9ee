// No machine with a GPU runs these tests. A flag says that native TensorFlow uses one, so that everything takes the way for GPUs.
import * as tf from "@tensorflow/tfjs-core";
import { engineMemory, fingerprintWeights, inMemory, isOnDevice } from "@periodic-eval/tfjs";
import { fakeTokenizer } from "@periodic-eval/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import { graphBackend } from "../../../kernels/src/graph/graph-function.ts";
import { hasNative, nativeBackend, testedBackends } from "../testing/backends.test-data.ts";
import { meanLoss, twoRows } from "../testing/mean-loss.test-data.ts";
import { largestDifference } from "../testing/largest-difference.test-data.ts";
import { tinyConfig } from "../testing/tiny-config.test-data.ts";
import { useBackend } from "./use-backend.ts";

interface Native {
  isUsingGpuDevice: boolean;
  binding: { tensorDataSync(id: number): ArrayLike<number | bigint> };
}
const native = () => tf.backend() as unknown as Native;

const weightsOf = (values: Float32Array, shape: readonly number[] = [values.length]) => {
  const tensor = tf.tensor(values, [...shape]);
  return [{ name: "w", read: () => tensor }];
};
const fingerprint = (values: Float32Array, shape?: readonly number[]) =>
  fingerprintWeights(weightsOf(values, shape), { method: "approximate" });

it.each(testedBackends)("tensors on %s are in host memory", async (backend) => {
  await useBackend({ backend });
  expect(isOnDevice()).toBe(false);
});

describe.skipIf(!hasNative)(`native TensorFlow that says it uses a GPU (${nativeBackend})`, () => {
  beforeEach(async () => {
    await useBackend({ backend: nativeBackend });
    native().isUsingGpuDevice = true;
    tf.engine().startScope();
  });
  afterEach(() => {
    native().isUsingGpuDevice = false;
    tf.engine().endScope();
  });

  const values = Float32Array.from({ length: 600 }, (_, i) => Math.sin(i + 1));
  /** Flips bits of the values of some entries. */
  const flipped = (bits: number, ...entries: number[]): Float32Array => {
    const copy = values.slice();
    const words = new Uint32Array(copy.buffer);
    for (const entry of entries) words[entry]! ^= bits;
    return copy;
  };

  it("reports no limit of memory, and builds no graphs, whose inputs would be downloaded", () => {
    expect(isOnDevice()).toBe(true);
    expect(engineMemory().limitBytes).toBeNull();
    expect(graphBackend()).toBeNull();
  });

  it("fingerprints weights by sums that change with each bit of one weight", async () => {
    const before = await fingerprint(values);
    expect(before).toMatch(/^approximate:/);
    expect(await fingerprint(values.slice())).toBe(before);
    const changed = [0, 1, 23, 30, 31].flatMap((bit) => [0, 299, 599].map((at) => flipped(1 << bit, at)));
    const all = await Promise.all(changed.map((one) => fingerprint(one)));
    expect(new Set([before, ...all]).size).toBe(16);
  });

  it("fingerprints swapped entries, two flipped signs, zeros of either sign and other shapes differently", async () => {
    const swapped = values.slice();
    [swapped[3], swapped[400]] = [values[400]!, values[3]!];
    const [zero, minusZero] = [values.slice(), values.slice()];
    [zero[5], minusZero[5]] = [0, -0];
    const all = [
      await fingerprint(values),
      await fingerprint(swapped),
      await fingerprint(flipped(1 << 31, 7, 20)),
      await fingerprint(zero),
      await fingerprint(minusZero),
      await fingerprint(values, [20, 30]),
    ];
    expect(new Set(all).size).toBe(all.length);
  });

  it("fingerprints pieces of 4 million values, by the same sums as without a GPU, and downloads 8 bytes of each", async () => {
    const large = weightsOf(new Float32Array(2 ** 22 + 4096).fill(0.1), [1025, 4096]);
    tf.add(large[0]!.read(), 1).dispose();
    const { numTensors, numBytes } = tf.memory();
    const { binding } = native();
    const downloads: number[] = [];
    const tensorDataSync = (id: number) => {
      const read = binding.tensorDataSync(id);
      downloads.push(read.length);
      return read;
    };
    // The binding's own properties are read-only.
    native().binding = Object.create(binding, {
      tensorDataSync: { value: tensorDataSync },
    }) as Native["binding"];
    const onDevice = await fingerprintWeights(large).finally(() => (native().binding = binding));
    expect(downloads).toEqual([1, 1]);
    expect(tf.memory()).toMatchObject({ numTensors, numBytes });
    native().isUsingGpuDevice = false;
    expect(await fingerprintWeights(large, { method: "approximate" })).toBe(onDevice);
    expect(await fingerprintWeights(large)).not.toMatch(/^approximate:/);
  });

  it("scores, generates and computes gradients as on the CPU", async () => {
    const results: number[][] = [];
    for (const isUsingGpu of [false, true]) {
      native().isUsingGpuDevice = isUsingGpu;
      const lm = createCausalLM(tinyConfig, { seed: "device", initStd: 0.3 });
      const model = inMemory(lm, fakeTokenizer(), { name: "tiny" });
      const call = { signal: new AbortController().signal };
      const contexts = [[1, 4, 5], [1, 4, 6, 2], [3]].map((ids) => ({ ids }));
      const sampling = { maxNewTokens: 2, temperature: 1, seed: "device" };
      const { value, grads } = tf.variableGrads(() => meanLoss(lm, twoRows.ids, twoRows.labels));
      results.push([
        ...(
          await model.logLikelihoods(
            contexts.map((context) => ({ context, continuation: { ids: [6, 7] } })),
            call,
          )
        ).flatMap(({ tokenNats }) => tokenNats),
        ...(
          await model.generate(
            contexts.map((prompt) => ({ prompt, sampling })),
            call,
          )
        ).flatMap(({ ids }) => ids ?? []),
        ...value.dataSync(),
        ...Object.values(grads).flatMap((gradient) => [...gradient.dataSync()]),
      ]);
      lm.dispose();
    }
    // Graphs compute the same in another order.
    expect(largestDifference(results[0]!, results[1]!)).toBeLessThan(1e-6);
  });
});
