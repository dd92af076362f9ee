import * as tf from "@tensorflow/tfjs-core";
import { beforeAll, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { crossEntropy } from "../testing/mean-loss.test-data.ts";
import { sum } from "./arithmetic.ts";
import { gradientsOf, isWanted } from "./differentiable.ts";
import { layerNorm, rmsNorm } from "./norms.ts";
import { linear, tiedHead } from "./linear.ts";

beforeAll(async () => void (await useBackend({ backend: "cpu" })));

const variable = <R extends tf.Rank>(shape: tf.ShapeMap[R], salt: number) =>
  tf.variable(tf.randomNormal<R>(shape, 0, 1, "float32", salt)) as tf.Tensor<R> & tf.Variable<R>;

it("returns the same gradients of its variables with gradientsOf, and keeps fewer tensors", () => {
  tf.tidy(() => {
    const x = tf.randomNormal([4, 3], 0, 1, "float32", 1) as tf.Tensor2D;
    const [first, second, third] = [2, 3, 4].map((salt) => variable<tf.Rank.R2>([3, 3], salt)) as [
      tf.Variable<tf.Rank.R2> & tf.Tensor2D,
      tf.Variable<tf.Rank.R2> & tf.Tensor2D,
      tf.Variable<tf.Rank.R2> & tf.Tensor2D,
    ];
    const embedding = variable<tf.Rank.R2>([5, 3], 5);
    const [scale, shift] = [variable<tf.Rank.R1>([3], 6), variable<tf.Rank.R1>([3], 7)];
    const targets = tf.tensor1d([0, 4, 2, 1], "int32");
    let kept = 0;
    const pass = () => {
      const one = rmsNorm(linear(x, first, null), scale, 1e-3, 0);
      const two = linear(one, second, shift);
      const three = layerNorm(linear(sum(one, two), third, null), scale, shift, { epsilon: 1e-3, offset: 0 });
      const logits = tiedHead(three, embedding);
      kept = tf.memory().numTensors;
      return logits;
    };
    const gradientsIn = (run: () => tf.Tensor2D, wanted: tf.Variable[]) => {
      const before = tf.memory().numTensors;
      const { grads } = tf.variableGrads(() => crossEntropy(run(), targets), wanted);
      return { kept: kept - before, values: wanted.map(({ name }) => [...grads[name]!.dataSync()]) };
    };
    for (const wanted of [[second], [third], [second, shift], [embedding], [scale]]) {
      const whole = gradientsIn(pass, wanted);
      const some = gradientsIn(() => gradientsOf(wanted, pass), wanted);
      expect(some.values).toEqual(whole.values);
      expect(some.kept).toBeLessThan(whole.kept);
    }
    gradientsOf([second], () => expect([isWanted(first), isWanted(second)]).toEqual([false, true]));
    expect(isWanted(first)).toBe(true);
  });
});
