import { existsSync } from "node:fs";
import { join } from "node:path";
import { fakeTokenizer } from "../../../testing/src/index.ts";
import { inMemory, isOnDevice } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import { beforeAll, describe, expect, it } from "vitest";
import { kernelFolder, nativeKernels } from "./compiled-kernels.ts";
import { kernelsVersion } from "../../../tfjs/src/in-memory.ts";
import { nativeBackendFolder } from "../../../models/src/backend/installed-backends.ts";
import { useBackend } from "../../../models/src/backend/use-backend.ts";
import { createCausalLM } from "../../../models/src/checkpoint/create-causal-lm.ts";
import { hasNative, nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import { tinyConfig } from "../../../models/src/testing/tiny-config.test-data.ts";
import { hasNativeKernels, runNative } from "../../../models/src/ops/native.ts";

// Tests need `periodic-eval native`, which compiles the kernels.
if (hasNative) await useBackend({ backend: nativeBackend });
const isThere = hasNative && hasNativeKernels();
const folder = kernelFolder(`@tensorflow/${nativeBackend}`, nativeBackendFolder());
const compiled = join(folder, nativeKernels().file);
// On a GPU the kernels are not used.
const isCompiled = hasNative && existsSync(compiled) && !isOnDevice();

const random = (seed: number, ...shape: number[]) => tf.randomNormal(shape, 0, 1, "float32", seed);

const difference = (a: tf.Tensor, b: tf.Tensor): number => tf.max(tf.abs(tf.sub(a, b))).dataSync()[0]!;

describe("the sources of the kernels", () => {
  it("are those of this version of the kernels", () => {
    expect(
      { version: kernelsVersion, fingerprint: nativeKernels().fingerprint },
      "If the kernels round differently now, raise kernelsVersion in packages/tfjs/src/in-memory.ts. Then update this test.",
    ).toEqual({
      version: 4,
      fingerprint: "4156089201eedbca92585147453412a3d65c79383387e0a9485618765d170f74",
    });
  });
});

describe.runIf(isCompiled)("compiled kernels", () => {
  it("are loaded by useBackend", async () => {
    await useBackend({ backend: nativeBackend });
    expect(hasNativeKernels(), `A warning says why ${compiled} was not loaded. Run \`npm run native\`.`).toBe(
      true,
    );
  });

  it("are named in a model's identity, with the width of their vectors", async () => {
    await useBackend({ backend: nativeBackend });
    const model = createCausalLM(tinyConfig, { seed: "a" });
    const { details } = inMemory(model, fakeTokenizer()).identity;
    expect(details).toEqual({
      tfjs: tf.version_core,
      kernels: kernelsVersion,
      lanes: expect.toBeOneOf([4, 8, 16]),
    });
    model.dispose();
  });
});

describe.runIf(isThere)("the kernels for native TensorFlow", () => {
  beforeAll(() => useBackend({ backend: nativeBackend }));

  it.each([
    [1, 576, 192],
    [3, 65, 50],
    [16, 100, 48],
    [37, 7, 3],
    [300, 64, 100],
  ])("multiply %i rows of %i numbers with %i columns", (rows, depth, columns) => {
    tf.tidy(() => {
      const [x, w] = [random(1, rows, depth), random(2, depth, columns)];
      const product = runNative("PeriodicMatMul", [x, w], {});
      expect(difference(product, tf.matMul(x, w))).toBeLessThan(1e-4);
    });
  });

  it("give a row the same product whatever the number of rows", () => {
    tf.tidy(() => {
      const [x, w] = [random(1, 33, 576), random(2, 576, 192)];
      const all = runNative("PeriodicMatMul", [x, w], {}).arraySync() as number[][];
      for (const rows of [1, 2, 8, 9, 32]) {
        const first = runNative("PeriodicMatMul", [tf.slice(x, [0, 0], [rows, 576]), w], {});
        expect(first.arraySync()).toEqual(all.slice(0, rows));
      }
    });
  });

  const bitsOf = (tensor: tf.Tensor) => new Uint32Array(tensor.dataSync<"float32">().slice().buffer);

  /** Random numbers that are exactly bfloat16. */
  const randomHalves = (seed: number, rows: number, columns: number) => {
    const bits = new Uint32Array(random(seed, rows, columns).dataSync<"float32">().slice().buffer);
    return tf.tensor2d(new Float32Array(bits.map((word) => word & 0xffff0000).buffer), [rows, columns]);
  };

  // Whole panels and a narrow last one; one tile, several, and several chunks of rows.
  it.each(
    [1, 2, 6, 7, 16, 300].flatMap((rows) =>
      [
        [1, 2],
        [65, 50],
        [100, 64],
        [33, 192],
        [576, 198],
      ].map(([depth, columns]) => [rows, depth!, columns!] as const),
    ),
  )(
    "multiply %i rows of %i numbers with %i columns of half width, with the same bits",
    (rows, depth, columns) => {
      tf.tidy(() => {
        const [x, w] = [random(1, rows, depth), randomHalves(2, depth, columns)];
        const expected = runNative("PeriodicMatMul", [x, w], {}).dataSync();
        for (const transposed of [0, 1] as const) {
          const half = runNative("PeriodicHalve", [transposed ? tf.transpose(w) : w], { transposed });
          expect([half.dtype, ...half.shape]).toEqual(["int32", depth, columns / 2]);
          expect(runNative("PeriodicMatMul", [x, half], {}).dataSync()).toEqual(expected);
        }
      });
    },
  );

  it("multiply with special numbers of half width as with float32", () => {
    tf.tidy(() => {
      const w = tf.tensor2d([0, -0, 2 ** -130, Infinity, 1, -Infinity, Number.NaN, 3], [1, 8]);
      const half = runNative("PeriodicHalve", [w], { transposed: 0 });
      const x = tf.tensor2d([2, -1], [2, 1]);
      const product = (weights: tf.Tensor) => runNative("PeriodicMatMul", [x, weights], {}).arraySync();
      expect(product(half)).toEqual(product(w));
    });
  });

  it("widen halves to the same bits", () => {
    tf.tidy(() => {
      for (const columns of [2, 50, 64, 198]) {
        const w = randomHalves(2, 33, columns);
        const halves = runNative("PeriodicHalve", [w], { transposed: 0 });
        expect(bitsOf(runNative("PeriodicWiden", [halves], {}))).toEqual(bitsOf(w));
      }
      const special = tf.tensor2d([0, -0, 2 ** -130, Infinity, Number.NaN, 3], [1, 6]);
      const halves = runNative("PeriodicHalve", [special], { transposed: 0 });
      expect(bitsOf(runNative("PeriodicWiden", [halves], {}))).toEqual(bitsOf(special));
    });
  });

  it("halve no weight with an odd number of columns, or with a number that is not bfloat16", () => {
    tf.tidy(() => {
      const halve = (w: tf.Tensor2D) => runNative("PeriodicHalve", [w], { transposed: 0 }).shape;
      expect(halve(randomHalves(1, 64, 63))).toEqual([0]);
      for (const at of [0, 64 * 64 - 1]) {
        const w = randomHalves(1, 64, 64).bufferSync();
        w.values[at] = 1 + 2 ** -8;
        expect(halve(w.toTensor())).toEqual([0]);
        w.values[at] = 1 + 2 ** -7;
        expect(halve(w.toTensor())).toEqual([64, 32]);
      }
    });
  });

  it.each([16, 37])("normalize blocks of %i numbers", (width) => {
    tf.tidy(() => {
      const [x, weight] = [random(1, 5, 3 * width), random(2, width)];
      const rows = tf.reshape(x, [-1, width]);
      const scale = tf.rsqrt(tf.add(tf.mean(tf.square(rows), -1, true), 1e-5));
      for (const offset of [0, 1]) {
        const expected = tf.reshape(tf.mul(tf.mul(rows, scale), tf.add(weight, offset)), x.shape);
        const normed = runNative("PeriodicRmsNorm", [x, weight], { epsilon: 1e-5, offset });
        expect(difference(normed, expected)).toBeLessThan(1e-5);
      }
    });
  });

  it("compute gates, also of very large numbers", () => {
    tf.tidy(() => {
      const gate = tf.concat([tf.mul(random(1, 37), 20), tf.tensor1d([-1e5, -90, 0, 90, 1e5])]);
      const x = tf.reshape(gate, [2, 21]);
      const up = random(2, 2, 21);
      const gated = runNative("PeriodicGatedSilu", [x, up], {});
      const expected = tf.mul(tf.mul(x, tf.sigmoid(x)), up);
      expect(difference(gated, expected)).toBeLessThan(0.02);
      const relative = tf.div(tf.abs(tf.sub(gated, expected)), tf.add(tf.abs(expected), 1e-6));
      expect(tf.max(relative).dataSync()[0]).toBeLessThan(1e-5);
    });
  });

  it("rotate pairs of numbers and leave the rest", () => {
    tf.tidy(() => {
      // One head of five numbers: (1, 3) and (2, 4) by 90° and 0°, scaled by 2.
      const x = tf.tensor2d([[1, 2, 3, 4, 5]]);
      const cosines = tf.tensor2d([[0, 1, 0, 1, 1]]);
      const sines = tf.tensor2d([[1, 0, 1, 0, 0]]);
      const rotated = runNative("PeriodicRotate", [x, cosines, sines], { pairs: 2, scale: 2 });
      expect(rotated.arraySync()).toEqual([[-6, 4, 2, 8, 10]]);
    });
  });

  it.each([
    { batch: 1, length: 1, heads: 4, groups: 2, width: 8, pieces: [5] },
    { batch: 3, length: 1, heads: 9, groups: 3, width: 64, pieces: [40, 33] },
    { batch: 2, length: 19, heads: 6, groups: 2, width: 20, pieces: [3, 16, 19] },
    { batch: 2, length: 1, heads: 6, groups: 2, width: 20, pieces: [150, 170, 70] },
  ])("attend over pieces: %o", ({ batch, length, heads, groups, width, pieces }) => {
    tf.tidy(() => {
      const query = random(1, batch * length, heads * width);
      const parts = pieces.map((tokens, index) => {
        // The first of several pieces is shared by all rows.
        const rows = index === 0 && pieces.length > 1 ? 1 : batch;
        const some = tf.less(random(index, batch, length, tokens), -1);
        // In a long piece also whole vectors of tokens.
        const at = tf.range(0, tokens);
        const hidden =
          tokens < 100 ? some : tf.logicalOr(some, tf.logicalAnd(tf.greater(at, 19), tf.less(at, 70)));
        return {
          rows,
          tokens,
          keys: random(10 + index, rows * groups, width, tokens),
          values: random(20 + index, rows * groups, tokens, width),
          // The last piece has no mask.
          mask: index === pieces.length - 1 ? null : tf.mul(tf.cast(hidden, "float32"), -1e9),
        };
      });
      const inputs = [
        query,
        ...parts.map(({ keys }) => keys),
        ...parts.map(({ values }) => values),
        ...parts.map(({ mask, tokens }) => mask?.reshape([batch, length * tokens]) ?? tf.tensor1d([])),
      ];
      const attended = runNative("PeriodicAttend", inputs, {
        heads,
        keyValueHeads: groups,
        pieces: pieces.length,
      });
      const ofGroups = (x: tf.Tensor, rows: number, shape: number[]) => {
        const all = tf.tile(tf.reshape(x, [rows, groups, 1, ...shape]), [
          batch / rows,
          1,
          heads / groups,
          1,
          1,
        ]);
        return tf.reshape(all, [batch, heads, ...shape]);
      };
      const queries = tf.transpose(tf.reshape(query, [batch, length, heads, width]), [0, 2, 1, 3]);
      const keys = parts.map(({ keys, rows, tokens }) => ofGroups(keys, rows, [width, tokens]));
      const values = parts.map(({ values, rows, tokens }) => ofGroups(values, rows, [tokens, width]));
      const masks = parts.map(({ mask, tokens }) =>
        tf.reshape(mask ?? tf.zeros([batch, length, tokens]), [batch, 1, length, tokens]),
      );
      const scores = tf.add(tf.matMul(queries, tf.concat(keys, 3)), tf.concat(masks, 3));
      const mean = tf.matMul(tf.softmax(scores), tf.concat(values, 2));
      const expected = tf.reshape(tf.transpose(mean, [0, 2, 1, 3]), query.shape);
      expect(difference(attended, expected)).toBeLessThan(2e-5);
    });
  });

  it.each([
    ["NaN", Number.NaN],
    ["infinite", Number.POSITIVE_INFINITY],
  ])("give NaN for a query with a score that is %s, and only for it", (_, key) => {
    // The first piece has a tile of several vectors, and both have a vector that is not full.
    const pieces = [70, 5];
    for (const [wrong, tokens] of pieces.entries()) {
      for (let token = 0; token < tokens; token++) {
        tf.tidy(() => {
          const keys = pieces.map((count, piece) => {
            const buffer = tf.buffer([2, 3, count]);
            if (piece === wrong) buffer.set(key, 0, 1, token);
            return buffer.toTensor();
          });
          const values = pieces.map((count, piece) => random(piece, 2, count, 3));
          const masks = pieces.map(() => tf.tensor1d([]));
          const attended = runNative("PeriodicAttend", [tf.ones([2, 3]), ...keys, ...values, ...masks], {
            heads: 1,
            keyValueHeads: 1,
            pieces: 2,
          });
          const mean = tf.mean(tf.concat(values, 1), 1).arraySync() as number[][];
          const [first, second] = attended.arraySync() as number[][];
          expect(first).toEqual([Number.NaN, Number.NaN, Number.NaN]);
          expect(second).toEqual(mean[1]!.map((value) => expect.closeTo(value, 5)));
        });
      }
    }
  });

  it("attend with the same bits to tokens in one piece and in two", () => {
    tf.tidy(() => {
      // 64 tokens are one tile, or two; 48 and 16 are single vectors where a vector has 16 numbers.
      const [query, keys, values] = [random(1, 3, 24), random(2, 3, 8, 64), random(3, 3, 64, 8)];
      const attended = (sizes: number[]) =>
        runNative(
          "PeriodicAttend",
          [
            query,
            ...tf.split(keys, sizes, 2),
            ...tf.split(values, sizes, 1),
            ...sizes.map(() => tf.tensor1d([])),
          ],
          { heads: 3, keyValueHeads: 1, pieces: sizes.length },
        ).arraySync();
      expect(attended([48, 16])).toEqual(attended([64]));
    });
  });

  it("leave no tensors", () => {
    const before = tf.memory().numTensors;
    tf.tidy(() => {
      runNative("PeriodicGatedSilu", [random(1, 2, 3), random(2, 2, 3)], {});
    });
    expect(tf.memory().numTensors).toBe(before);
  });
});
