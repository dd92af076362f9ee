import * as tf from "@tensorflow/tfjs";
import { beforeAll, describe, expect, it } from "vitest";
import "@tensorflow/tfjs-backend-wasm";
import { crossEntropy, sequenceLogProbs } from "./token-losses.ts";

describe.each(["cpu", "wasm"])("sequenceLogProbs on %s", (backend) => {
  beforeAll(async () => {
    await tf.setBackend(backend);
    await tf.ready();
  });

  const values = (rows: number[][], targets: number[], counts: number[]) =>
    tf.tidy(() => [
      ...sequenceLogProbs(crossEntropy(tf.tensor2d(rows), tf.tensor1d(targets, "int32")), counts).dataSync(),
    ]);

  it("equals the computation by hand, one sum per sequence", () => {
    const rows = [
      [1, 2, 3],
      [5, 5, 5],
      [0, Math.log(3), -1000],
    ];
    // log p: 1 − log(e + e² + e³) = −2.40761; −log 3 = −1.09861; log 3/4 = −0.28768.
    const [first, second] = values(rows, [0, 2, 1], [2, 1]);
    expect(first).toBeCloseTo(-3.50622, 4);
    expect(second).toBeCloseTo(-0.28768, 4);
  });

  it("stays exact if the target's probability underflows to 0, and passes NaN on", () => {
    // p(target) = e⁻²⁰⁰ is 0 in float32.
    expect(values([[1000, 800]], [1], [1])[0]).toBeCloseTo(-200, 3);
    const [one, other] = values(
      [
        [1, Number.NaN],
        [0, 0],
      ].reverse(),
      [0, 0],
      [1, 1],
    );
    expect(one).toBeCloseTo(-Math.LN2, 5);
    expect(other).toBeNaN();
  });

  it("has the gradient one-hot − softmax, times the incoming gradient of the sequence", () => {
    // softmax of [0, log 3] is [1/4, 3/4]; targets 1, 0, 1 → [−1/4, 1/4], [3/4, −3/4], [−1/4, 1/4]; times 2, 2, −3.
    const targets = tf.tensor1d([1, 0, 1], "int32");
    const weights = tf.tensor1d([2, -3]);
    const gradient = tf.grad((x: tf.Tensor) =>
      tf.sum(tf.mul(sequenceLogProbs(crossEntropy(x as tf.Tensor2D, targets), [2, 1]), weights)),
    );
    const row = [0, Math.log(3)];
    const found = [...gradient(tf.tensor2d([row, row, row])).dataSync()];
    for (const [i, expected] of [-0.5, 0.5, 1.5, -1.5, 0.75, -0.75].entries())
      expect(found[i]).toBeCloseTo(expected, 6);
  });

  it("leaves no tensor except its result", () => {
    const logits = tf.variable(tf.ones([4, 6])) as tf.Variable<tf.Rank.R2>;
    const targets = tf.tensor1d([0, 1, 2, 3], "int32");
    const before = tf.memory().numTensors;
    const { value, grads } = tf.variableGrads(
      () => tf.sum(sequenceLogProbs(crossEntropy(logits, targets), [1, 3])),
      [logits],
    );
    expect(tf.memory().numTensors).toBe(before + 2);
    tf.dispose([value, grads, logits, targets]);
  });
});
