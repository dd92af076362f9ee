import { blockOf } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import type { CheckpointLM } from "../checkpoint/model.ts";
import { hasNative, nativeBackend } from "../testing/backends.test-data.ts";
import { tinyConfig, unusualFamilies } from "../testing/tiny-config.test-data.ts";
import type * as HalfWeights from "./half-weights.ts";
import { hasNativeKernels } from "./native.ts";

let isOff = false;
vi.mock("./half-weights.ts", async (load) => {
  const original = await load<typeof HalfWeights>();
  const halfOf: typeof original.halfOf = (weight, isTransposed) =>
    isOff ? weight : original.halfOf(weight, isTransposed);
  return { ...original, halfOf };
});

if (hasNative) await useBackend({ backend: nativeBackend });

describe.runIf(hasNative && hasNativeKernels())("half-width weights", () => {
  beforeAll(() => useBackend({ backend: nativeBackend }));

  /** Sets the lower half of the bits of each weight, and `add` to it: 0 gives exact bfloat16. */
  function setLowerHalves(model: CheckpointLM, add: number): void {
    for (const { variable } of model.weights()) {
      const bits = new Uint32Array(variable.dataSync<"float32">().slice().buffer);
      const values = new Float32Array(bits.map((word) => (word & 0xffff0000) + add).buffer);
      tf.tidy(() => variable.assign(tf.tensor(values, variable.shape)));
    }
  }

  /** Reads six tokens one by one. Returns the states, which the head reads, and the logits. */
  function readByToken({ incremental }: CheckpointLM) {
    const results = { states: [] as number[], logits: [] as number[] };
    const first = incremental.extend(blockOf([[1]], 0), { rows: [0], keep: true });
    for (let at = 0; at < 6; at++) {
      const into = first.keyValues;
      const { states } = at === 0 ? first : incremental.extend(blockOf([[1 + at]], at), { rows: [0], into });
      const logits = incremental.logitsOf(states);
      results.states.push(...states.dataSync());
      results.logits.push(...logits.dataSync());
      tf.dispose([states, logits]);
    }
    first.keyValues!.dispose();
    return results;
  }

  function withoutHalves<T>(run: () => T): T {
    isOff = true;
    try {
      return run();
    } finally {
      isOff = false;
    }
  }

  const families = [{ family: "tinyConfig", config: tinyConfig }, ...unusualFamilies];

  it.each(families)("give a model of $family the same states, and leave no tensors", ({ config }) => {
    const model = createCausalLM(config, { seed: "a", initStd: 0.3 });
    setLowerHalves(model, 0);
    const { numTensors, numDataBuffers } = tf.memory();
    const read = readByToken(model);
    expect(tf.memory()).toMatchObject({ numTensors, numDataBuffers });
    const plain = withoutHalves(() => readByToken(model));
    expect(read.states).toEqual(plain.states);
    // TensorFlow computes the other head.
    const far = read.logits.map((logit, at) => Math.abs(logit - plain.logits[at]!));
    expect(Math.max(...far)).toBeLessThan(1e-4);
    model.dispose();
  });

  it("replace the float32 values, which are restored bit for bit when they are read", () => {
    const model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
    setLowerHalves(model, 0);
    const { tensorMap } = tf.backend() as unknown as { tensorMap: tf.DataStorage<{ readonly id: number }> };
    const freed = () => model.weights().filter(({ variable }) => tensorMap.get(variable.dataId).id < 0);
    const logits = () => tf.tidy(() => model.logits(tf.tensor2d([[1, 2, 3]], [1, 3], "int32")).dataSync());
    const [before, expected] = [model.weights().map(({ variable }) => variable.dataSync()), logits()];
    readByToken(model);
    const names = freed().map(({ name }) => name);
    expect(names).toContain("model.layers.0.self_attn.q_proj.weight");
    expect(model.weights().map(({ variable }) => variable.dataSync())).toEqual(before);
    expect(logits()).toEqual(expected);
    expect(freed()).toEqual([]);
    model.dispose();
  });

  it("give values that survive a change of the backend, and are no view of the weight", async () => {
    const model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
    setLowerHalves(model, 0);
    const before = model.weights().map(({ variable }) => variable.dataSync().slice());
    readByToken(model);
    model.weights()[1]!.variable.dataSync()[0] = 12345;
    expect(model.weights().map(({ variable }) => variable.dataSync())).toEqual(before);
    readByToken(model);
    await tf.setBackend("cpu");
    try {
      expect(model.weights().map(({ variable }) => variable.dataSync())).toEqual(before);
      expect(tf.tidy(() => model.logits(tf.tensor2d([[1, 2]], [1, 2], "int32")).dataSync()[0])).toBeTypeOf(
        "number",
      );
    } finally {
      model.dispose();
      await useBackend({ backend: nativeBackend });
    }
  });

  it("keep the old values of a tensor that shares a weight when the weight changes", () => {
    const model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
    setLowerHalves(model, 0);
    const shared = model
      .weights()
      .map(({ variable }) => ({ before: variable.dataSync(), tensor: tf.clone(variable) }));
    readByToken(model);
    setLowerHalves(model, 0x4000);
    readByToken(model);
    for (const { before, tensor } of shared) expect(tensor.dataSync()).toEqual(before);
    tf.dispose(shared.map(({ tensor }) => tensor));
    model.dispose();
  });

  it("follow the weights: new values count at once, and values that are not bfloat16 are read as they are", () => {
    const model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
    setLowerHalves(model, 0);
    const exact = readByToken(model);
    setLowerHalves(model, 0x4000);
    const trained = readByToken(model);
    expect(trained.states).not.toEqual(exact.states);
    expect(trained).toEqual(withoutHalves(() => readByToken(model)));
    setLowerHalves(model, 0);
    expect(readByToken(model)).toEqual(exact);
    model.dispose();
  });
});
