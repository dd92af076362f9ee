import { adamWKernel } from "@periodic-eval/core/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import { beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { hasNative, nativeBackend } from "../testing/backends.ts";
import { hasNativeKernels } from "./native-kernels.ts";

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

  it("leave no tensors", () => {
    const before = tf.memory().numTensors;
    tf.tidy(() => {
      steps(random(1, 5), random(2, 5), random(3, 5), tf.square(random(4, 5)));
    });
    expect(tf.memory().numTensors).toBe(before);
  });
});
