import { adamWKernel, targetLosses } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import { beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../../../models/src/backend/use-backend.ts";
import { hasNative, nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import { hasNativeKernels, runNative } from "../../../models/src/ops/native.ts";

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
    const actual = tf.engine().runKernel(adamWKernel, inputs, { numbers }) as tf.Tensor[];
    const [keep1, take1, keep2, take2, epsilon, stepSize, decay] = numbers.map((number) => tf.scalar(number));
    const newMean = tf.add(tf.mul(mean, keep1!), tf.mul(gradient, take1!));
    const newMeanSq = tf.add(tf.mul(meanSq, keep2!), tf.mul(tf.square(gradient), take2!));
    const change = tf.mul(tf.div(newMean, tf.add(tf.sqrt(newMeanSq), epsilon!)), stepSize!);
    return { actual, expected: [tf.sub(tf.mul(weight, decay!), change), newMean, newMeanSq] };
  }

  it.each([[[]], [[1]], [[7, 3]], [[64, 33]], [[3, 257, 129]]])(
    "update a weight of shape %j by AdamW with the bits of TensorFlow's operations",
    (shape) => {
      tf.tidy(() => {
        const [gradient, weight, mean, root] = [1, 2, 3, 4].map((seed) => random(seed, ...shape));
        const { actual, expected } = steps(gradient!, weight!, mean!, tf.square(root!));
        expect(actual.map((tensor) => tensor.shape)).toEqual([shape, shape, shape]);
        expect(bits(actual)).toEqual(bits(expected));
      });
    },
  );

  it("update weights with gradients that are NaN, infinite, zero, very large or very small", () => {
    tf.tidy(() => {
      const special = [Number.NaN, Infinity, -Infinity, 0, -0, 3e38, 1e-18, 1];
      const gradient = tf.tensor1d(special.flatMap((value) => special.map(() => value)));
      const mean = tf.tensor1d(special.flatMap(() => special));
      const { actual, expected } = steps(gradient, tf.onesLike(mean), mean, tf.abs(mean));
      const values = (tensors: readonly tf.Tensor[]) => tensors.map((tensor) => [...tensor.dataSync()]);
      expect(values(actual)).toEqual(values(expected));
    });
  });

  it("treat denormal numbers as zero on every thread", () => {
    tf.tidy(() => {
      const mean = tf.fill([2 ** 18], 1e-39);
      const inputs = { gradient: mean, weight: tf.zerosLike(mean), mean, meanSq: mean };
      const actual = tf.engine().runKernel(adamWKernel, inputs, { numbers }) as tf.Tensor[];
      expect(actual.map((tensor) => tf.max(tf.abs(tensor)).dataSync()[0])).toEqual([0, 0, 0]);
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

  /** Compares results with those of TensorFlow's operations, by name; differences are relative to the largest number. */
  function expectEqual(pairs: Readonly<Record<string, readonly [found: tf.Tensor, expected: tf.Tensor]>>) {
    const differences = Object.entries(pairs).map(([name, [actual, expected]]) => {
      expect(actual.shape, name).toEqual(expected.shape);
      const largest = tf.max(tf.abs(tf.sub(actual, expected))).dataSync()[0]!;
      return [name, largest / Math.max(1, tf.max(tf.abs(expected)).dataSync()[0]!)];
    });
    // Float32 rounds a sum of thousands of numbers to about 1e-6.
    expect(differences.filter(([, difference]) => !(Number(difference) < 1e-5))).toEqual([]);
  }

  const epsilon = 1e-5;
  const meanOf = (x: tf.Tensor) => tf.mean(x, -1, true);
  const inverseOf = (x: tf.Tensor) => tf.rsqrt(tf.add(meanOf(tf.square(x)), epsilon));

  /** Rows and columns: fewer than a vector, no multiple of one, and several groups of rows. */
  const sizes = [
    [1, 1],
    [3, 7],
    [70, 33],
    [1008, 128],
    [5000, 24],
  ] as const;

  it.each(sizes)("give [%i, %i] the norms of TensorFlow's operations, and their gradients", (rows, width) => {
    tf.tidy(() => {
      const [x, gradient] = [random(1, rows, width), random(2, rows, width)];
      const [weight, bias] = [random(3, width), random(4, width)];
      const centered = tf.sub(x, meanOf(x));
      const normed = tf.mul(centered, inverseOf(centered));
      const ofNormed = tf.mul(gradient, weight);
      const along = tf.mul(normed, meanOf(tf.mul(ofNormed, normed)));
      const ofX = tf.mul(inverseOf(centered), tf.sub(tf.sub(ofNormed, meanOf(ofNormed)), along));
      const actual = runNative("PeriodicLayerNormGradient", [gradient, x, weight], { epsilon });
      expectEqual({
        norm: [
          runNative("PeriodicLayerNorm", [x, weight, bias], { epsilon }),
          tf.add(tf.mul(normed, weight), bias),
        ],
        ofX: [actual[0]!, ofX],
        ofWeight: [actual[1]!, tf.sum(tf.mul(gradient, normed), 0)],
        ofBias: [actual[2]!, tf.sum(gradient, 0)],
      });
    });
  });

  it.each(sizes.flatMap(([rows, width]) => [[rows, width, 0] as const, [rows, width, 1] as const]))(
    "give two blocks of [%i, %i] the RMS norms of TensorFlow's operations, and their gradients (offset %i)",
    (rows, width, offset) => {
      tf.tidy(() => {
        const [x, gradient] = [random(1, rows, 2 * width), random(2, rows, 2 * width)];
        const weight = random(3, width);
        const [blocks, ofBlocks] = [x, gradient].map((of) => tf.reshape(of, [2 * rows, width]));
        const [factor, inverse] = [tf.add(weight, offset), inverseOf(blocks!)];
        const normed = tf.mul(blocks!, inverse);
        const ofNormed = tf.mul(ofBlocks!, factor);
        const ofX = tf.mul(inverse, tf.sub(ofNormed, tf.mul(normed, meanOf(tf.mul(ofNormed, normed)))));
        const [foundOfX, foundOfWeight] = runNative("PeriodicRmsNormGradient", [gradient, x, weight], {
          epsilon,
          offset,
        });
        expectEqual({
          norm: [
            runNative("PeriodicRmsNorm", [x, weight], { epsilon, offset }),
            tf.reshape(tf.mul(normed, factor), x.shape),
          ],
          ofX: [foundOfX!, tf.reshape(ofX, x.shape)],
          ofWeight: [foundOfWeight!, tf.sum(tf.mul(ofBlocks!, normed), 0)],
        });
      });
    },
  );

  it.each(sizes)(
    "give [%i, %i] the activations of TensorFlow's operations, and their gradients",
    (rows, width) => {
      tf.tidy(() => {
        const [x, up, gradient] = [1, 2, 3].map((seed) => random(seed, rows, width));
        const sigmoid = tf.sigmoid(x!);
        const silu = tf.mul(x!, sigmoid);
        const siluSlope = tf.add(sigmoid, tf.mul(silu, tf.sub(1, sigmoid)));
        const bend = Math.sqrt(2 / Math.PI);
        const tanh = tf.tanh(tf.mul(bend, tf.add(x!, tf.mul(0.044715, tf.pow(x!, 3)))));
        const inner = tf.mul(bend, tf.add(1, tf.mul(3 * 0.044715, tf.square(x!))));
        const geluSlope = tf.add(
          tf.mul(0.5, tf.add(1, tanh)),
          tf.mul(tf.mul(tf.mul(0.5, x!), tf.sub(1, tf.square(tanh))), inner),
        );
        const [ofGate, ofUp] = runNative("PeriodicGatedSiluGradient", [gradient!, x!, up!], {});
        expectEqual({
          silu: [runNative("PeriodicGatedSilu", [x!, up!], {}), tf.mul(silu, up!)],
          ofGate: [ofGate!, tf.mul(tf.mul(gradient!, up!), siluSlope)],
          ofUp: [ofUp!, tf.mul(gradient!, silu)],
          gelu: [runNative("PeriodicGeluTanh", [x!], {}), tf.mul(tf.mul(0.5, x!), tf.add(1, tanh))],
          ofX: [runNative("PeriodicGeluTanhGradient", [gradient!, x!], {}), tf.mul(gradient!, geluSlope)],
        });
      });
    },
  );

  it.each([
    [1, 1, 1],
    [3, 4, 7],
    [2, 33, 70],
    [64, 63, 63],
  ])("give scores [%i, %i, %i] the softmax of TensorFlow's operations, and its gradient", (...shape) => {
    tf.tidy(() => {
      const [scores, gradient] = [random(1, ...shape), random(2, ...shape)];
      const masks = [random(3, ...shape), random(4, ...shape.slice(1))];
      for (const mask of masks) {
        const weights = tf.softmax(tf.add(scores, mask));
        const sum = tf.sum(tf.mul(gradient, weights), -1, true);
        expectEqual({
          weights: [runNative("PeriodicMaskedSoftmax", [scores, mask], {}), weights],
          gradient: [
            runNative("PeriodicSoftmaxGradient", [gradient, weights], {}),
            tf.mul(weights, tf.sub(gradient, sum)),
          ],
        });
      }
    });
  });

  it("give a masked score the weight 0", () => {
    tf.tidy(() => {
      const mask = Array.from({ length: 5 }, (_row, row) =>
        Array.from({ length: 5 }, (_column, column) => (column > row ? -1e9 : 0)),
      );
      const weights = runNative("PeriodicMaskedSoftmax", [random(1, 6, 5, 5), tf.tensor2d(mask)], {});
      expect(tf.max(tf.slice(weights, [0, 0, 1], [6, 1, 4])).dataSync()[0]).toBe(0);
    });
  });

  it.each([
    ["PeriodicLayerNorm", [[2, 4], [4], [3]], { epsilon }, "differ in width"],
    ["PeriodicLayerNorm", [[2, 4], [3], [3]], { epsilon }, "differ in width"],
    ["PeriodicLayerNormGradient", [[2, 4], [2, 3], [3]], { epsilon }, "differ in size"],
    ["PeriodicLayerNormGradient", [[2, 4], [2, 4], [3]], { epsilon }, "differ in size"],
    ["PeriodicRmsNorm", [[2, 4], [3]], { epsilon, offset: 0 }, "differ in width"],
    ["PeriodicRmsNormGradient", [[2, 4], [2, 3], [3]], { epsilon, offset: 0 }, "differ in size"],
    [
      "PeriodicGatedSilu",
      [
        [2, 4],
        [2, 3],
      ],
      {},
      "differ in size",
    ],
    [
      "PeriodicGatedSiluGradient",
      [
        [2, 4],
        [2, 4],
        [2, 3],
      ],
      {},
      "differ in size",
    ],
    [
      "PeriodicGeluTanhGradient",
      [
        [2, 4],
        [2, 3],
      ],
      {},
      "differ in size",
    ],
    [
      "PeriodicMaskedSoftmax",
      [
        [4, 3, 4],
        [2, 3, 4],
      ],
      {},
      "expected scores [A, T, P]",
    ],
    [
      "PeriodicMaskedSoftmax",
      [
        [2, 3, 0],
        [3, 4],
      ],
      {},
      "expected scores [A, T, P]",
    ],
    ["PeriodicMaskedSoftmax", [[], []], {}, "expected scores [A, T, P]"],
    [
      "PeriodicSoftmaxGradient",
      [
        [2, 3, 4],
        [2, 3, 3],
      ],
      {},
      "of one shape",
    ],
  ] as const)("%s refuses the shapes %j", (name, shapes, parameters, message) => {
    tf.tidy(() => {
      const inputs = shapes.map((shape) => tf.zeros([...shape]));
      expect(() => runNative(name, inputs, parameters as never)).toThrow(`${name}: `);
      expect(() => runNative(name, inputs, parameters as never)).toThrow(message);
    });
  });

  it("leave no tensors", () => {
    const before = tf.memory().numTensors;
    tf.tidy(() => {
      steps(random(1, 5), random(2, 5), random(3, 5), tf.square(random(4, 5)));
      runNative("PeriodicTargetLosses", [random(1, 2, 3), tf.tensor1d([0, 1], "int32")], {});
      const [x, weight] = [random(1, 2, 3), random(2, 3)];
      runNative("PeriodicLayerNormGradient", [x, x, weight], { epsilon });
      runNative("PeriodicRmsNormGradient", [x, x, weight], { epsilon, offset: 0 });
      runNative("PeriodicGatedSiluGradient", [x, x, x], {});
    });
    expect(tf.memory().numTensors).toBe(before);
  });
});
