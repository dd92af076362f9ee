import { adamWKernel } from "@periodic-eval/core/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { batchedByViews } from "../ops/wasm-batch.ts";
import { smallProductsKernel } from "./added-kernels.ts";
import { kernelsOf } from "./instance.ts";

const special = [0, -0, NaN, Infinity, -Infinity, 1e-45, -1e-39, 3e38];
const value = fc.oneof(
  { arbitrary: fc.float({ noNaN: true, min: -8, max: 8 }), weight: 30 },
  fc.constantFrom(...special),
);
const values = (size: number) => fc.array(value, { minLength: size, maxLength: size });
const side = fc.integer({ min: 1, max: 21 });
const runs = { numRuns: 60 };

/** Returns the bits of the values; every NaN is one value. */
const bitsOf = (tensor: tf.Tensor): number[] => {
  const read = Float32Array.from(tensor.dataSync(), (each) => (Number.isNaN(each) ? NaN : each));
  return [...new Int32Array(read.buffer)];
};

/** Runs in a tidy, and checks that no tensor and no data stay. */
function checked(run: () => void): void {
  const data = () => tf.backend().numDataIds();
  const before = [tf.memory().numTensors, data()];
  tf.tidy(run);
  expect([tf.memory().numTensors, data()]).toEqual(before);
}

beforeAll(async () => void (await useBackend({ backend: "wasm" })));

describe("kernels of kernels.wat", () => {
  it("are registered on this backend", () => {
    expect(kernelsOf(tf.backend())).not.toBeNull();
    for (const name of [adamWKernel, smallProductsKernel]) expect(tf.getKernel(name, "wasm")).toBeDefined();
  });

  it("run on memory that is shared and on memory that is not, and on no other", () => {
    for (const shared of [true, false]) {
      const memory = new WebAssembly.Memory({ initial: 1, maximum: 2, shared });
      const kernels = kernelsOf({ wasm: shared ? { wasmMemory: memory } : { asm: { memory } } })!;
      const numbers = new Float32Array(memory.buffer);
      numbers.set([1, 2, 3, 4, 5]);
      // g = w = m = v, and all factors are 0 except that of the weight.
      kernels.adamW(0, 0, 0, 0, 100, 200, 300, 5, 0, 0, 0, 0, 1, 0, 1);
      expect([...numbers.subarray(25, 31)]).toEqual([1, 2, 3, 4, 5, 0]);
    }
    const unlimited = new WebAssembly.Memory({ initial: 1 });
    for (const wasm of [{}, { asm: {} }, { asm: { memory: {} } }, { asm: { memory: unlimited } }])
      expect(kernelsOf({ wasm })).toBeNull();
  });

  it("update weights with the bits of separate operations", () => {
    const size = fc.integer({ min: 4, max: 40 });
    const four = size.chain((n) => fc.array(values(n), { minLength: 4, maxLength: 4 }));
    fc.assert(
      fc.property(four, fc.boolean(), (arrays, isDecayed) => {
        const numbers = [0.9, 0.1 * 0.37, 0.999, 0.001 * 0.37 ** 2, 3e-9, 0.00271, isDecayed ? 0.9999 : 1];
        checked(() => {
          const [gradient, weight, mean, meanSq] = arrays.map((array) => tf.tensor1d(array)) as [
            ...[tf.Tensor1D, tf.Tensor1D, tf.Tensor1D, tf.Tensor1D],
          ];
          const [keep1, take1, keep2, take2, epsilon, stepSize, decay] = numbers as [
            ...[number, number, number, number, number, number, number],
          ];
          const expAvg = tf.add(tf.mul(mean, keep1), tf.mul(gradient, take1));
          const expAvgSq = tf.add(tf.mul(meanSq, keep2), tf.mul(tf.square(gradient), take2));
          const change = tf.mul(tf.div(expAvg, tf.add(tf.sqrt(expAvgSq), epsilon)), stepSize);
          const expected = [tf.sub(isDecayed ? tf.mul(weight, decay) : weight, change), expAvg, expAvgSq];
          const inputs = { gradient, weight, mean, meanSq };
          const found = tf.engine().runKernel(adamWKernel, inputs, { numbers }) as tf.Tensor[];
          expect(found.map(bitsOf)).toEqual(expected.map(bitsOf));
          // The inputs keep their values, and one tensor can be several inputs.
          expect(bitsOf(weight)).toEqual(bitsOf(tf.tensor1d(arrays[1]!)));
          const same = { gradient, weight: gradient, mean: gradient, meanSq: gradient };
          const copies = {
            gradient,
            weight: tf.tensor1d(arrays[0]!),
            mean: tf.add(gradient, 0),
            meanSq: gradient,
          };
          const [one, other] = [same, { ...copies, mean: tf.tensor1d(arrays[0]!) }].map((given) =>
            (tf.engine().runKernel(adamWKernel, given, { numbers }) as tf.Tensor[]).map(bitsOf),
          );
          expect(one).toEqual(other);
        });
      }),
      runs,
    );
  });

  it("throw if a result does not fit into memory, and keep nothing", () => {
    const backend = tf.backend() as unknown as {
      wasm: { _malloc(bytes: number): number };
    } & tf.KernelBackend;
    const { wasm } = backend;
    const allocate = wasm._malloc;
    const weight = tf.ones([8]);
    const before = backend.numDataIds();
    let left = 2;
    wasm._malloc = (bytes) => {
      if (left-- === 0) throw new RangeError("full");
      return allocate(bytes);
    };
    const inputs = { gradient: weight, weight, mean: weight, meanSq: weight };
    try {
      const run = () => tf.engine().runKernel(adamWKernel, inputs, { numbers: [1, 1, 1, 1, 1, 1, 1] });
      expect(run).toThrow("full");
    } finally {
      wasm._malloc = allocate;
    }
    expect(backend.numDataIds()).toBe(before);
    weight.dispose();
  });

  it("multiply small matrices with the bits of XNNPACK", () => {
    const sizes = fc.tuple(
      fc.integer({ min: 0, max: 3 }),
      fc.integer({ min: 4, max: 13 }),
      side,
      fc.integer({ min: 8, max: 27 }),
    );
    const operands = sizes.chain(([batch, rows, inner, columns]) =>
      fc.tuple(
        fc.constant([
          [batch, rows, inner],
          [batch, inner, columns],
        ] as [number, number, number][]),
        values(batch * rows * inner),
        values(batch * inner * columns),
      ),
    );
    fc.assert(
      fc.property(operands, ([[ofA, ofB], a, b]) =>
        checked(() => {
          const given = { a: tf.tensor3d(a, ofA), b: tf.tensor3d(b, ofB) };
          const found = tf.engine().runKernel(smallProductsKernel, given) as tf.Tensor;
          const expected = batchedByViews(given.a, given.b);
          expect(found.shape).toEqual(expected.shape);
          expect(bitsOf(found)).toEqual(bitsOf(expected));
        }),
      ),
      runs,
    );
  });
});
