import * as tf from "@tensorflow/tfjs";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import "@tensorflow/tfjs-backend-wasm";
import { crossEntropySum } from "./token-losses.ts";

describe.each(["cpu", "wasm"])("crossEntropySum on %s", (backend) => {
  let tensors = 0;
  beforeAll(async () => {
    await tf.setBackend(backend);
    await tf.ready();
  });
  beforeEach(() => {
    tf.engine().startScope();
    tensors = tf.memory().numTensors;
  });
  afterEach(() => tf.engine().endScope());

  const value = (rows: number[][], targets: number[]) =>
    crossEntropySum(tf.tensor2d(rows), tf.tensor1d(targets, "int32")).dataSync()[0]!;

  it("equals the computation by hand", () => {
    // Row 1: −log(e²/(e¹+e²+e³)) = log(e⁻¹ + 1 + e) = log 4.08616 = 1.40761; row 2: log 3 = 1.09861.
    expect(
      value(
        [
          [1, 2, 3],
          [5, 5, 5],
        ],
        [1, 0],
      ),
    ).toBeCloseTo(1.40761 + 1.09861, 4);
  });

  it("does not overflow, and stays exact if the target's probability underflows to 0", () => {
    // p(target) = e⁻²⁰⁰ is 0 in float32; the log-sum-exp is 1000, so the loss is 200.
    expect(value([[1000, 800]], [1])).toBeCloseTo(200, 3);
    expect(value([[1000, 800]], [0])).toBeCloseTo(0, 6);
  });

  it("returns NaN or Inf for input with NaN or Inf", () => {
    expect(value([[1, Number.NaN, 3]], [0])).toBeNaN();
    expect(
      value(
        [
          [1, 2, 3],
          [Number.NaN, 1, 1],
        ],
        [0, 0],
      ),
    ).toBeNaN();
    expect(value([[1, Number.POSITIVE_INFINITY, 3]], [0])).not.toBeLessThan(Number.MAX_VALUE);
  });

  it("has the gradient softmax − one-hot, times the incoming gradient", () => {
    // softmax of [0, log 3] is [1/4, 3/4]; target 1 → [1/4, −1/4]; times 2.
    const targets = tf.tensor1d([1], "int32");
    const gradient = tf.grad((x: tf.Tensor) => tf.mul(crossEntropySum(x as tf.Tensor2D, targets), 2));
    const found = gradient(tf.tensor2d([[0, Math.log(3)]])).dataSync();
    expect(found[0]).toBeCloseTo(0.5, 6);
    expect(found[1]).toBeCloseTo(-0.5, 6);
  });

  it("agrees with central finite differences", () => {
    const rows = Array.from({ length: 3 }, (_, i) =>
      Array.from({ length: 5 }, (_, j) => Math.sin(1 + 7 * i + 3 * j)),
    );
    const targets = [4, 0, 2];
    const ids = tf.tensor1d(targets, "int32");
    const gradient = tf
      .grad((x: tf.Tensor) => crossEntropySum(x as tf.Tensor2D, ids))(tf.tensor2d(rows))
      .dataSync();
    const step = 1e-2;
    for (let i = 0; i < 3; i++) {
      for (let j = 0; j < 5; j++) {
        const moved = (by: number) =>
          rows.map((row, k) => row.map((x, l) => (k === i && l === j ? x + by : x)));
        const difference = (value(moved(step), targets) - value(moved(-step), targets)) / (2 * step);
        // The loss is about 5 with a rounding error of 5e-7: over 2 · 0.01 that is 5e-5.
        expect(Math.abs(gradient[i * 5 + j]! - difference)).toBeLessThan(2e-4);
      }
    }
  });

  it("leaves no tensor except its result", () => {
    const logits = tf.variable(tf.ones([4, 6])) as tf.Variable<tf.Rank.R2>;
    const targets = tf.tensor1d([0, 1, 2, 3], "int32");
    const before = tf.memory().numTensors;
    const { value: loss, grads } = tf.variableGrads(() => crossEntropySum(logits, targets), [logits]);
    expect(tf.memory().numTensors).toBe(before + 2);
    tf.dispose([loss, grads]);
    tf.dispose([logits, targets]);
    expect(before).toBeGreaterThan(tensors);
  });
});
