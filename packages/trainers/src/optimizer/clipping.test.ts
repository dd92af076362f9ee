import * as tf from "@tensorflow/tfjs-core";
import { createCausalLM, useBackend } from "@periodic-eval/models";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { SFTTrainer } from "../sft/sft-trainer.ts";
import { hasNative, nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import {
  recording,
  rows,
  temporaryFolder,
  tinyLlama,
  tokenizer,
  ungoverned,
} from "../testing/tiny-run.test-data.ts";
import { clipFactor, GradientNorm } from "./adamw.ts";

describe("clipFactor", () => {
  it("scales a norm above the limit to it, and leaves a smaller one unchanged", () => {
    expect(clipFactor(4, 1)).toBeCloseTo(1 / 4.000001, 12);
    expect(clipFactor(0.5, 1)).toBe(1);
    expect(clipFactor(100, null)).toBe(1);
  });
});

describe("GradientNorm", () => {
  beforeAll(async () => void (await useBackend({ backend: "wasm" })));

  it("computes the norm of all gradients as one vector, and leaves no tensor", async () => {
    const gradients = [tf.tensor2d([[1, -2]]), tf.scalar(2), tf.tensor1d([4, 0])];
    const before = tf.memory().numTensors;
    const norm = new GradientNorm();
    // 1 + 4 + 4 + 16 = 25
    expect(await norm.of(gradients)).toBe(5);
    expect(await norm.of([])).toBeNull();
    norm.dispose();
    expect(tf.memory().numTensors).toBe(before);
    tf.dispose(gradients);
  });
});

describe.runIf(hasNative)(`a training on ${nativeBackend}`, () => {
  beforeAll(async () => void (await useBackend({ backend: nativeBackend })));
  afterAll(async () => {
    vi.restoreAllMocks();
    await useBackend({ backend: "wasm" });
  });

  it("leaves no TensorFlow graph behind", async () => {
    const backend = tf.backend() as unknown as Record<
      "loadSavedModelMetaGraph" | "deleteSavedModel",
      () => void
    >;
    const [load, remove] = [
      vi.spyOn(backend, "loadSavedModelMetaGraph"),
      vi.spyOn(backend, "deleteSavedModel"),
    ];
    const model = createCausalLM(tinyLlama, { seed: "graphs" });
    const runDir = await temporaryFolder();
    const config = { maxSteps: 2, batchSize: 4 };
    await new SFTTrainer({
      model,
      tokenizer,
      dataset: rows(8),
      runDir,
      config,
      session: ungoverned,
      loggers: [recording()],
    }).train();
    model.dispose();
    expect(load).toHaveBeenCalled();
    expect(remove).toHaveBeenCalledTimes(load.mock.calls.length);
  });
});
