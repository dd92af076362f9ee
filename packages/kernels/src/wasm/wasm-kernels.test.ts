import { adamWKernel } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../../../models/src/backend/use-backend.ts";
import { batchedByViews } from "../../../models/src/ops/mat-mul.ts";
import { smallProductsKernel } from "./added-kernels.ts";
import { kernelsOf } from "./instance.ts";
import { swapOf } from "./register.ts";

const special = [0, -0, NaN, Infinity, -Infinity, 1e-45, -1e-39, 3e38];
const value = fc.oneof(
  { arbitrary: fc.float({ noNaN: true, min: -8, max: 8 }), weight: 30 },
  fc.constantFrom(...special),
);
const values = (size: number) => fc.array(value, { minLength: size, maxLength: size });
/** Shapes with their values. */
const tensors = (shapes: fc.Arbitrary<number[]>) =>
  shapes.chain((shape) => fc.tuple(fc.constant(shape), values(tf.util.sizeFromShape(shape))));
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
      kernels.copyRuns(0, 0, 100, 0, 1, 5);
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
          const actual = tf.engine().runKernel(adamWKernel, inputs, { numbers }) as tf.Tensor[];
          expect(actual.map(bitsOf)).toEqual(expected.map(bitsOf));
          // The inputs keep their values, and one tensor can be several inputs.
          expect(bitsOf(weight)).toEqual(bitsOf(tf.tensor1d(arrays[1]!)));
          const same = { gradient, weight: gradient, mean: gradient, meanSq: gradient };
          const copies = {
            gradient,
            weight: tf.tensor1d(arrays[0]!),
            mean: tf.add(gradient, 0),
            meanSq: gradient,
          };
          const [first, second] = [same, { ...copies, mean: tf.tensor1d(arrays[0]!) }].map((operands) =>
            (tf.engine().runKernel(adamWKernel, operands, { numbers }) as tf.Tensor[]).map(bitsOf),
          );
          expect(first).toEqual(second);
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
      fc.integer({ min: 1, max: 13 }),
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
          const operands = { a: tf.tensor3d(a, ofA), b: tf.tensor3d(b, ofB) };
          const actual = tf.engine().runKernel(smallProductsKernel, operands) as tf.Tensor;
          const expected = batchedByViews(operands.a, operands.b);
          expect(actual.shape).toEqual(expected.shape);
          expect(bitsOf(actual)).toEqual(bitsOf(expected));
        }),
      ),
      runs,
    );
  });
});

describe("kernels of the backend that kernels.wat replaces", () => {
  it("transpose any order of axes", () => {
    // The backend's own kernel divides by the sides, so that it traps for some empty tensors.
    const shape = fc.array(fc.integer({ min: 1, max: 21 }), { minLength: 1, maxLength: 4 });
    const small = shape.filter((sides) => tf.util.sizeFromShape(sides) < 5000);
    const cases = small.chain((sides) =>
      fc.tuple(fc.constant(sides), fc.shuffledSubarray([...sides.keys()], { minLength: sides.length })),
    );
    fc.assert(
      fc.property(cases, ([sides, order]) => {
        const size = tf.util.sizeFromShape(sides);
        for (const dtype of ["float32", "int32", "bool"] as const)
          checked(() => {
            const numbers = Array.from({ length: size }, (_, i) => (dtype === "bool" ? i % 2 : i - 7));
            const actual = tf.transpose(tf.tensor(numbers, sides, dtype), order);
            const outSides = order.map((axis) => sides[axis]!);
            expect([actual.dtype, actual.shape]).toEqual([dtype, outSides]);
            const strides = sides.map((_, axis) => tf.util.sizeFromShape(sides.slice(axis + 1)));
            const outStrides = outSides.map((_, axis) => tf.util.sizeFromShape(outSides.slice(axis + 1)));
            const expected = Array.from({ length: size }, (_, i) => {
              const from = order.map(
                (axis, at) => (Math.floor(i / outStrides[at]!) % outSides[at]!) * strides[axis]!,
              );
              return numbers[from.reduce((sum, offset) => sum + offset, 0)]!;
            });
            expect([...actual.dataSync()]).toEqual(expected);
          });
      }),
      { numRuns: 300 },
    );
  });

  it("find each swap of two groups of axes", () => {
    expect(swapOf([5, 7], [1, 0])).toEqual({ outer: 1, rows: 5, columns: 7, inner: 1 });
    expect(swapOf([2, 3, 5, 7], [0, 2, 1, 3])).toEqual({ outer: 2, rows: 3, columns: 5, inner: 7 });
    expect(swapOf([2, 3, 5, 7], [2, 3, 0, 1])).toEqual({ outer: 1, rows: 6, columns: 35, inner: 1 });
    expect(swapOf([1, 3, 1, 7], [2, 3, 0, 1])).toEqual({ outer: 1, rows: 3, columns: 7, inner: 1 });
    expect(swapOf([2, 3, 5], [2, 1, 0])).toBeNull();
    expect(swapOf([2, 1, 5], [1, 0, 2])).toBeNull();
  });

  it("slice columns and rows", () => {
    const cases = fc.tuple(
      fc.integer({ min: 0, max: 9 }),
      fc.integer({ min: 0, max: 9 }),
      fc.nat(30),
      fc.nat(30),
    );
    fc.assert(
      fc.property(cases, fc.boolean(), ([rows, first, start, columns], isCut) => {
        const all = start + columns + 3;
        for (const dtype of ["float32", "int32", "bool"] as const)
          checked(() => {
            const table = Array.from({ length: first + rows }, (_, row) =>
              Array.from({ length: all }, (_, column) =>
                dtype === "bool" ? column % 2 : row * all + column,
              ),
            );
            const x = tf.tensor(table.flat(), [1, first + rows, all], dtype);
            const from = isCut ? first : 0;
            const actual = tf.slice(x, [0, from, start], [-1, -1, columns]);
            expect([actual.dtype, actual.shape]).toEqual([dtype, [1, first + rows - from, columns]]);
            const expected = table.slice(from).flatMap((row) => row.slice(start, start + columns));
            expect([...actual.dataSync()]).toEqual(expected);
          });
      }),
      { numRuns: 200 },
    );
  });

  it("join tensors along any axis", () => {
    const cases = fc.tuple(
      fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 3 }),
      fc.nat(2),
      fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 4 }),
    );
    fc.assert(
      fc.property(cases, ([sides, some, lengths]) => {
        const axis = some % sides.length;
        for (const dtype of ["float32", "int32", "bool"] as const)
          checked(() => {
            let next = 0;
            const parts = lengths.map((length) => {
              const shape = sides.with(axis, length);
              const numbers = Array.from({ length: tf.util.sizeFromShape(shape) }, () =>
                dtype === "bool" ? next++ % 2 : next++,
              );
              return tf.tensor(numbers, shape, dtype);
            });
            const actual = tf.concat(parts, some < sides.length ? axis : axis - sides.length);
            const all = lengths.reduce((sum, length) => sum + length, 0);
            expect([actual.dtype, actual.shape]).toEqual([dtype, sides.with(axis, all)]);
            const outer = tf.util.sizeFromShape(sides.slice(0, axis));
            const expected = Array.from({ length: outer }, (_, i) =>
              parts.map((part) => {
                const run = part.size / outer;
                return [...part.dataSync()].slice(i * run, (i + 1) * run);
              }),
            ).flat(2);
            expect([...actual.dataSync()]).toEqual(expected);
          });
      }),
      { numRuns: 200 },
    );
  });

  it("join texts, and refuse shapes that do not match, also of an empty tensor", () => {
    checked(() => {
      const words = [["a", "b"], ["c"]].map((some) => tf.tensor1d(some));
      expect(tf.concat(words).dataSync()).toEqual(["a", "b", "c"]);
      const [two, three] = [tf.ones([2, 3]), tf.ones([3, 3])];
      for (const parts of [
        [two, three],
        [tf.zeros([3, 0]), two],
        [tf.zeros([0]), two],
      ])
        expect(() => tf.concat(parts, 1)).toThrow();
    });
  });

  it("find the maximum of each row with the bits of the backend's own kernel", () => {
    fc.assert(
      fc.property(
        tensors(fc.tuple(fc.integer({ min: 1, max: 5 }), side)),
        fc.boolean(),
        ([shape, numbers], keep) =>
          checked(() => {
            const [rows, columns] = shape as [number, number];
            const actual = tf.max(tf.tensor2d(numbers, [rows, columns]), -1, keep);
            expect(actual.shape).toEqual(keep ? [rows, 1] : [rows]);
            // The backend's own kernel computes the maximum over two axes.
            const maxima = Array.from({ length: rows }, (_, row) =>
              tf.max(tf.tensor3d(numbers.slice(row * columns, (row + 1) * columns), [1, 1, columns]), [1, 2]),
            );
            expect(bitsOf(actual)).toEqual(maxima.flatMap(bitsOf));
          }),
      ),
      { numRuns: 300 },
    );
  });

  it("share the values of a clone until the last tensor is disposed", () => {
    checked(() => {
      const x = tf.tensor1d([1, 2, 3]);
      const clone = tf.clone(x);
      x.dispose();
      tf.tensor1d([7, 8, 9]);
      expect([...clone.dataSync()]).toEqual([1, 2, 3]);
      const variable = tf.variable(clone);
      variable.assign(tf.tensor1d([4, 5, 6]));
      expect([...clone.dataSync()]).toEqual([1, 2, 3]);
      variable.dispose();
      expect(tf.clone(tf.tensor1d(["a"])).dataSync()).toEqual(["a"]);
    });
  });
});
