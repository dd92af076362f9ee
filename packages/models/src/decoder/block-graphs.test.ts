import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as tf from "@tensorflow/tfjs-core";
import { blockOf, type TokenBlock } from "@periodic-eval/tfjs";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import type { CheckpointLM } from "../checkpoint/model.ts";
import { graphBackend } from "../../../kernels/src/graph/graph-function.ts";
import { hasNative, nativeBackend } from "../testing/backends.test-data.ts";
import { tinyConfig } from "../testing/tiny-config.test-data.ts";

const block = (batch: number, length: number, from = 0): TokenBlock =>
  blockOf(
    Array.from({ length: batch }, (_row, row) =>
      Array.from({ length }, (_token, at) => 1 + ((row * length + at) % 7)),
    ),
    from,
  );

describe.skipIf(!hasNative)("blocks as graphs", () => {
  let model: CheckpointLM;
  beforeEach(async () => {
    await useBackend({ backend: nativeBackend });
    model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    model.dispose();
  });

  /** Returns the largest difference between the logits of a block and those of the whole sequence. */
  const farFromWhole = (batch: number, length: number): number => {
    const read = block(batch, length);
    const rows = read.ids.map((_, at) => at);
    const { states } = model.incremental.extend(read, { rows: [...rows] });
    const far = tf.tidy(() => {
      const whole = model.logits(tf.tensor2d(read.ids, [batch, length], "int32"));
      const logits = tf.reshape(model.incremental.logitsOf(states), whole.shape);
      return tf.max(tf.abs(tf.sub(logits, whole))).dataSync()[0]!;
    });
    states.dispose();
    return far;
  };

  it("builds one graph per kind of block for all sizes, and deletes it with the model", () => {
    const backend = graphBackend()!;
    const [load, run, remove] = (
      ["loadSavedModelMetaGraph", "runSavedModel", "deleteSavedModel"] as const
    ).map((method) => vi.spyOn(backend, method));
    farFromWhole(2, 5);
    farFromWhole(3, 4);
    expect([load!.mock.calls.length, run!.mock.calls.length]).toEqual([1, 2]);
    const first = model.incremental.extend(block(2, 3), { rows: [], keep: true });
    first.states.dispose();
    for (const from of [3, 4, 5]) {
      const next = model.incremental.extend(block(2, 1, from), { into: first.keyValues, rows: [0, 1] });
      next.states.dispose();
    }
    expect([load!.mock.calls.length, run!.mock.calls.length]).toEqual([3, 6]);
    first.keyValues!.dispose();
    expect(remove).not.toHaveBeenCalled();
    model.dispose();
    expect(remove).toHaveBeenCalledTimes(3);
    model = createCausalLM(tinyConfig, { seed: "a" });
  });

  it("uses the current weights at each call", () => {
    expect(farFromWhole(2, 5)).toBeLessThan(1e-5);
    for (const weight of model.trainables()) tf.tidy(() => weight.assign(tf.mul(weight, 1.5)));
    expect(farFromWhole(2, 5)).toBeLessThan(1e-5);
  });

  it("distinguishes weights that have equal values while the graph is built", () => {
    const norms = model.trainables().filter(({ name }) => name.endsWith("layernorm.weight"));
    const numbers = tf.randomUniform(norms[0]!.shape, 0.5, 1.5, "float32", 7);
    for (const norm of norms) norm.assign(numbers);
    expect(farFromWhole(2, 5)).toBeLessThan(1e-5);
    tf.tidy(() => norms[0]!.assign(tf.mul(numbers, 2)));
    expect(farFromWhole(2, 5)).toBeLessThan(1e-5);
    numbers.dispose();
  });

  it("warns once if a graph cannot be built, and reads without it", () => {
    const load = vi.spyOn(graphBackend()!, "loadSavedModelMetaGraph").mockImplementation(() => {
      throw new Error("the disk is full");
    });
    const warnings = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    expect(farFromWhole(2, 5)).toBeLessThan(1e-5);
    // A block of another kind.
    expect(farFromWhole(3, 1)).toBeLessThan(1e-5);
    expect(load).toHaveBeenCalledTimes(1);
    expect(warnings.mock.calls).toEqual([
      [expect.stringContaining("the disk is full"), { code: "PERIODIC_EVAL_GRAPH" }],
    ]);
  });
});
