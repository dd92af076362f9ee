import fc from "fast-check";
import { expect, it } from "vitest";
import { findAccumulationSteps } from "./accumulation-steps.ts";

it("returns the largest batch size that divides the dataset", () => {
  // Each of 2 replicas has 48 of 96 samples, and 16 is the largest divisor of 48 up to 20.
  expect(findAccumulationSteps(96, 20, 2)).toEqual([16, 3]);
  expect(findAccumulationSteps(97, 20, 1)).toEqual([1, 97]);
  expect(findAccumulationSteps(8, 100, 4)).toEqual([2, 1]);
  // 97 samples cannot be split over 2 replicas.
  expect(findAccumulationSteps(97, 20, 2)).toEqual([null, null]);
  const [batch, steps] = findAccumulationSteps(3, 20, 4);
  expect([batch, steps]).toEqual([null, null]);
});

it("returns the same as a search through all batch sizes from the largest down", () => {
  const some = fc.integer({ min: 1, max: 60 });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 500 }),
      some,
      fc.integer({ min: 1, max: 8 }),
      (size, most, replicas) => {
        let expected: [number, number] | [null, null] = [null, null];
        for (let batch = most; batch > 0 && expected[0] === null; batch--) {
          if (size % (batch * replicas) === 0) expected = [batch, size / (batch * replicas)];
        }
        expect(findAccumulationSteps(size, most, replicas)).toEqual(expected);
      },
    ),
  );
});

it("throws for arguments that are not positive integers", () => {
  expect(() => findAccumulationSteps(0, 1, 1)).toThrow("findAccumulationSteps.datasetSize: got 0");
  expect(() => findAccumulationSteps(1, 1.5, 1)).toThrow("findAccumulationSteps.maxBatchSize: got 1.5");
  expect(() => findAccumulationSteps(1, 1, NaN)).toThrow("dataParallelReplicas: got NaN");
});
