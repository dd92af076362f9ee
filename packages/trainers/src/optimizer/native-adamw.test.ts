import { adamWKernel } from "@periodic-eval/tfjs";
import { useBackend } from "@periodic-eval/models";
import * as tf from "@tensorflow/tfjs-core";
import { beforeAll, describe, expect, it } from "vitest";
import { hasNative, nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import { AdamW } from "./adamw.ts";

describe.runIf(hasNative)(`AdamW on ${nativeBackend}`, () => {
  beforeAll(() => useBackend({ backend: nativeBackend }));

  /** Takes five steps, and returns the bits of all weights and means. */
  function train(): number[][] {
    const shapes = [[3], [7, 3], [64, 33], [300, 257]];
    const weights = shapes.map((shape, i) => {
      const name = `${i}.${i === 1 ? "norm" : "weight"}`;
      return tf.tidy(() => tf.variable(tf.randomNormal(shape, 0, 1, "float32", i + 1), true, name));
    });
    const optimizer = new AdamW(weights, { weightDecay: 0.1, decay: "no-norms" });
    for (let step = 0; step < 5; step++) {
      const gradients = weights.map(({ name, shape }) => {
        return [name, tf.randomNormal(shape, 0, 1, "float32", step + 9)] as const;
      });
      optimizer.apply(Object.fromEntries(gradients), 0.01 / (step + 1), 0.3);
      tf.dispose(gradients.map(([, gradient]) => gradient));
    }
    const values = [...weights, ...optimizer.slots().map((slot) => slot.read())];
    const bits = values.map((tensor) => [...new Int32Array(Float32Array.from(tensor.dataSync()).buffer)]);
    optimizer.dispose();
    tf.dispose(weights);
    return bits;
  }

  it("gives the same bits with the compiled kernel and without, and leaves no tensors", ({ skip }) => {
    const kernel = tf.getKernel(adamWKernel, "tensorflow");
    if (kernel === undefined) skip("no compiled kernels");
    const before = tf.memory().numTensors;
    const found = train();
    tf.unregisterKernel(adamWKernel, "tensorflow");
    try {
      expect(found).toEqual(train());
    } finally {
      tf.registerKernel(kernel);
    }
    expect(tf.memory().numTensors).toBe(before);
  });
});
