import * as tf from "@tensorflow/tfjs-core";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { testedBackends } from "../testing/backends.test-data.ts";
import {
  batchMatMul,
  batchMatMulTransposedA,
  batchMatMulTransposedB,
  matMulTransposedA,
  matMulTransposedB,
  sumOfRows,
} from "./mat-mul.ts";

const size = fc.integer({ min: 1, max: 20 });

describe.each(testedBackends)("matrix products on %s", (backend) => {
  beforeAll(async () => void (await useBackend({ backend })));

  it("equal those of plain JavaScript, and leave no other tensors", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), size, size, size, (batch, rows, inner, columns) => {
        const before = tf.memory().numTensors;
        const a = counting([batch, rows, inner], 1);
        const b = counting([batch, inner, columns], 2);
        const aT = tf.transpose(a, [0, 2, 1]);
        const bT = tf.transpose(b, [0, 2, 1]);
        const expected = product(a, b);
        for (const found of [
          batchMatMul(a, b),
          batchMatMulTransposedA(aT, b),
          batchMatMulTransposedB(a, bT),
        ]) {
          expect(found.shape).toEqual([batch, rows, columns]);
          expect(valuesOf(found)).toEqual(expected);
          found.dispose();
        }
        tf.dispose([a, b, aT, bT]);
        expect(tf.memory().numTensors).toBe(before);
      }),
      { numRuns: 30 },
    );
  });

  it("equal a batch of one for two matrices with one transposed", () => {
    tf.tidy(() => {
      const [a, b] = [counting([1, 300, 4], 1), counting([1, 300, 6], 2)];
      const [a2, b2] = [tf.reshape(a, [300, 4]) as tf.Tensor2D, tf.reshape(b, [300, 6]) as tf.Tensor2D];
      expect(valuesOf(matMulTransposedA(a2, b2))).toEqual(product(tf.transpose(a, [0, 2, 1]), b));
      const [aT, bT] = [tf.transpose(a2), tf.transpose(b2)] as [tf.Tensor2D, tf.Tensor2D];
      expect(valuesOf(matMulTransposedB(aT, bT))).toEqual(product(tf.transpose(a, [0, 2, 1]), b));
    });
  });

  it("sum rows", () => {
    tf.tidy(() => {
      const rows = tf.tensor2d([
        [1, 2, 3],
        [10, 20, 30],
      ]);
      expect([...sumOfRows(rows).dataSync()]).toEqual([11, 22, 33]);
    });
  });
});

/** Integers below 8, whose products and sums are exact in float32. */
function counting(shape: [number, number, number], salt: number): tf.Tensor3D {
  const count = shape[0] * shape[1] * shape[2];
  return tf.tensor3d(
    Float32Array.from({ length: count }, (_, i) => ((i * 7 + salt * 3) % 8) - 3),
    shape,
  );
}

/** Adds 0, because backends differ in the sign of zero. */
const valuesOf = (x: tf.Tensor): number[] => Array.from(x.dataSync(), (value) => value + 0);

function product(a: tf.Tensor3D, b: tf.Tensor3D): number[] {
  const [left, right] = [a.arraySync(), b.arraySync()];
  return left.flatMap((matrix, i) =>
    matrix.flatMap((row) =>
      right[i]![0]!.map((_, column) => row.reduce((sum, x, k) => sum + x * right[i]![k]![column]!, 0)),
    ),
  );
}
