import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { batchesOfEpoch, planData } from "./batching.ts";

const lengthsOf = fc.array(fc.integer({ min: 2, max: 90 }), { minLength: 1, maxLength: 300 });
const options = { seed: "42", phase: "em" };

describe("batchesOfEpoch", () => {
  it("contains every row once, in batches of at most batchSize rows", () => {
    fc.assert(
      fc.property(lengthsOf, fc.integer({ min: 1, max: 20 }), fc.nat(5), (lengths, batchSize, epoch) => {
        const batches = batchesOfEpoch(lengths, epoch, { ...options, batchSize });
        expect(batches.flat().sort((a, b) => a - b)).toEqual(Array.from(lengths.keys()));
        expect(batches.filter((batch) => batch.length < batchSize).length).toBeLessThanOrEqual(1);
      }),
    );
  });

  it("batches rows of similar length together", () => {
    // 128 rows of 16 lengths in random order form one megabatch, so each batch of 8 has a single length.
    const lengths = Array.from({ length: 128 }, (_, i) => 2 + ((i * 37) % 16));
    for (const batch of batchesOfEpoch(lengths, 0, { ...options, batchSize: 8 })) {
      expect(new Set(batch.map((row) => lengths[row])).size).toBe(1);
    }
  });

  it("depends only on seed, phase and epoch", () => {
    const lengths = Array.from({ length: 64 }, () => 5);
    const order = (seed: string, phase: string, epoch: number) =>
      String(batchesOfEpoch(lengths, epoch, { batchSize: 4, seed, phase }));
    const first = order("42", "em", 0);
    expect(order("42", "em", 0)).toBe(first);
    expect(
      new Set([first, order("43", "em", 0), order("42", "coupling", 0), order("42", "em", 1)]).size,
    ).toBe(4);
  });
});

describe("planData", () => {
  it("counts the last, partial group of an epoch as a step", () => {
    // 10 rows: batches of 3, 3, 3, 1; groups of 2, 2.
    expect(
      planData(Array<number>(10).fill(4), { ...options, batchSize: 3, gradientAccumulation: 2 })
        .stepsPerEpoch,
    ).toBe(2);
    // 15 rows: five batches; groups of 2, 2, 1.
    const plan = planData(Array<number>(15).fill(4), { ...options, batchSize: 3, gradientAccumulation: 2 });
    expect([0, 1, 2, 3].map((step) => plan.microBatches(step).length)).toEqual([2, 2, 1, 2]);
  });

  it("returns the same micro-batches in any order of calls, and each row once per epoch", () => {
    fc.assert(
      fc.property(
        lengthsOf,
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 4 }),
        (lengths, batchSize, gradientAccumulation) => {
          const all = { ...options, batchSize, gradientAccumulation };
          const plan = planData(lengths, all);
          const steps = Array.from({ length: plan.stepsPerEpoch * 2 }, (_, step) => plan.microBatches(step));
          const rows = steps.slice(plan.stepsPerEpoch).flat(2);
          expect(rows.sort((a, b) => a - b)).toEqual(Array.from(lengths.keys()));
          const late = steps.length - 1;
          expect(planData(lengths, all).microBatches(late)).toEqual(steps[late]);
          expect(plan.microBatches(0)).toEqual(steps[0]);
        },
      ),
      { numRuns: 50 },
    );
  });
});
