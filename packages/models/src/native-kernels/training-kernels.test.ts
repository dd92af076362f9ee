import { adamWKernel, targetLosses } from "@periodic-eval/core/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import { beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { hasNative, nativeBackend } from "../testing/backends.ts";
import { hasNativeKernels, runNative } from "./native-kernels.ts";

// Tests need `periodic-eval native`, which compiles the kernels.
if (hasNative) await useBackend({ backend: nativeBackend });

const random = (seed: number, ...shape: number[]) => tf.randomNormal(shape, 0, 1, "float32", seed);

const bits = (tensors: readonly tf.Tensor[]) =>
  tensors.map((tensor) => [...new Int32Array(Float32Array.from(tensor.dataSync()).buffer)]);

describe.runIf(hasNative && hasNativeKernels())("the kernels for training on native TensorFlow", () => {
  beforeAll(() => useBackend({ backend: nativeBackend }));

  const numbers = [0.9, 0.03, 0.999, 0.0001, 1e-8, 0.01, 0.999];

  /** Computes a step of AdamW with the kernel and with TensorFlow's operations. */
  function steps(gradient: tf.Tensor, weight: tf.Tensor, mean: tf.Tensor, meanSq: tf.Tensor) {
    const inputs = { gradient, weight, mean, meanSq };
    const found = tf.engine().runKernel(adamWKernel, inputs, { numbers }) as tf.Tensor[];
    const [keep1, take1, keep2, take2, epsilon, stepSize, decay] = numbers.map((number) => tf.scalar(number));
    const newMean = tf.add(tf.mul(mean, keep1!), tf.mul(gradient, take1!));
    const newMeanSq = tf.add(tf.mul(meanSq, keep2!), tf.mul(tf.square(gradient), take2!));
    const change = tf.mul(tf.div(newMean, tf.add(tf.sqrt(newMeanSq), epsilon!)), stepSize!);
    return { found, expected: [tf.sub(tf.mul(weight, decay!), change), newMean, newMeanSq] };
  }

  it.each([[[]], [[1]], [[7, 3]], [[64, 33]], [[3, 257, 129]]])(
    "update a weight of shape %j by AdamW with the bits of TensorFlow's operations",
    (shape) => {
      tf.tidy(() => {
        const [gradient, weight, mean, root] = [1, 2, 3, 4].map((seed) => random(seed, ...shape));
        const { found, expected } = steps(gradient!, weight!, mean!, tf.square(root!));
        expect(found.map((tensor) => tensor.shape)).toEqual([shape, shape, shape]);
        expect(bits(found)).toEqual(bits(expected));
      });
    },
  );

  it("update weights with gradients that are NaN, infinite, zero, very large or very small", () => {
    tf.tidy(() => {
      const special = [Number.NaN, Infinity, -Infinity, 0, -0, 3e38, 1e-18, 1];
      const gradient = tf.tensor1d(special.flatMap((value) => special.map(() => value)));
      const mean = tf.tensor1d(special.flatMap(() => special));
      const { found, expected } = steps(gradient, tf.onesLike(mean), mean, tf.abs(mean));
      const values = (tensors: readonly tf.Tensor[]) => tensors.map((tensor) => [...tensor.dataSync()]);
      expect(values(found)).toEqual(values(expected));
    });
  });

  it("treat denormal numbers as zero on every thread", () => {
    tf.tidy(() => {
      const mean = tf.fill([2 ** 18], 1e-39);
      const inputs = { gradient: mean, weight: tf.zerosLike(mean), mean, meanSq: mean };
      const found = tf.engine().runKernel(adamWKernel, inputs, { numbers }) as tf.Tensor[];
      expect(found.map((tensor) => tf.max(tf.abs(tensor)).dataSync()[0])).toEqual([0, 0, 0]);
    });
  });

  it.each([
    [1, 1],
    [5, 37],
    [100, 2048],
    [3, 49_153],
  ])("compute the losses of %i rows of %i logits, and their gradient", (rows, vocabulary) => {
    tf.tidy(() => {
      const logits = tf.mul<tf.Tensor2D>(random(1, rows, vocabulary), 5);
      const ids = Array.from({ length: rows }, (_, row) => (row * 31) % vocabulary);
      const targets = tf.tensor1d([...ids.slice(0, -1), vocabulary - 1], "int32");
      const expected = targetLosses(logits, targets);
      const [losses, gradient] = runNative("PeriodicTargetLosses", [logits, targets], {});
      const difference = (a: tf.Tensor, b: tf.Tensor) => tf.max(tf.abs(tf.sub(a, b))).dataSync()[0]!;
      expect(difference(losses!, expected.losses)).toBeLessThan(1e-5);
      expect(difference(gradient!, expected.gradient())).toBeLessThan(1e-6);
    });
  });

  it("give rows with a logit that is NaN or infinite no finite loss, and only them", () => {
    tf.tidy(() => {
      const logits = tf.buffer([4, 21]);
      for (const [row, value] of [Number.NaN, Infinity].entries()) logits.set(value, row, 20);
      logits.set(-Infinity, 2, 0);
      const targets = tf.tensor1d([0, 0, 0, 0], "int32");
      const [losses, gradient] = runNative("PeriodicTargetLosses", [logits.toTensor(), targets], {});
      // The last row is uniform: ln 21.
      expect([...losses!.dataSync()]).toEqual([Number.NaN, Number.NaN, Infinity, expect.closeTo(3.0445, 4)]);
      const isNaN = tf.cast(tf.isNaN(gradient!), "float32");
      expect([...tf.sum(isNaN, 1).dataSync()]).toEqual([21, 21, 0, 0]);
    });
  });

  it.each([-1, 3])("refuse the target %i of a vocabulary of three", (target) => {
    const before = tf.memory().numTensors;
    tf.tidy(() => {
      const inputs = [tf.zeros([1, 3]), tf.tensor1d([target], "int32")];
      expect(() => runNative("PeriodicTargetLosses", inputs, {})).toThrow("one target of the vocabulary");
    });
    expect(tf.memory().numTensors).toBe(before);
  });

  it("leave no tensors", () => {
    const before = tf.memory().numTensors;
    tf.tidy(() => {
      steps(random(1, 5), random(2, 5), random(3, 5), tf.square(random(4, 5)));
      runNative("PeriodicTargetLosses", [random(1, 2, 3), tf.tensor1d([0, 1], "int32")], {});
    });
    expect(tf.memory().numTensors).toBe(before);
  });
});
