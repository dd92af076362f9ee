import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { batchByLength } from "./batches.ts";

const unbounded = { maxScoredRows: Infinity, fixedLength: null, reach: Infinity };

describe("batchByLength", () => {
  it("puts the longest rows first and counts padding", () => {
    // Lengths 3, 8, 5, 4 sorted: 8, 5, 4, 3. Width 8 allows 16 / 8 = 2 rows; then width 4 allows 4.
    const costs = [3, 8, 5, 4].map((tokens) => ({ tokens, scoredRows: 1 }));
    expect(batchByLength(costs, { ...unbounded, maxTokens: 16 })).toEqual([
      [1, 2],
      [3, 0],
    ]);
  });

  it("pads every row to a fixed length", () => {
    // Each row takes 8 tokens: 16 / 8 = 2 per batch.
    const costs = [1, 2, 3].map((tokens) => ({ tokens, scoredRows: 1 }));
    expect(batchByLength(costs, { ...unbounded, maxTokens: 16, fixedLength: 8 })).toEqual([[2, 1], [0]]);
  });

  it("does not batch rows beyond the reach with shorter rows", () => {
    // 9, 8, 7 exceed the reach of 6; 6, 6, 5 do not. Width 9 allows 30 / 9 = 3 rows.
    const costs = [6, 9, 5, 7, 8, 6].map((tokens) => ({ tokens, scoredRows: 1 }));
    expect(batchByLength(costs, { ...unbounded, maxTokens: 30, reach: 6 })).toEqual([
      [1, 4, 3],
      [0, 5, 2],
    ]);
  });

  it("stays within both budgets and returns every item once", () => {
    const cost = fc.record({
      tokens: fc.integer({ min: 1, max: 40 }),
      scoredRows: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(
      fc.property(
        fc.array(cost),
        fc.integer({ min: 1, max: 100 }),
        fc.integer({ min: 1, max: 20 }),
        (costs, maxTokens, maxScoredRows) => {
          const batches = batchByLength(costs, { ...unbounded, maxTokens, maxScoredRows });
          expect(batches.flat().toSorted((a, b) => a - b)).toEqual(costs.map((_, index) => index));
          for (const batch of batches) {
            if (batch.length === 1) continue;
            expect(batch.length * Math.max(...batch.map((i) => costs[i]!.tokens))).toBeLessThanOrEqual(
              maxTokens,
            );
            expect(batch.reduce((sum, i) => sum + costs[i]!.scoredRows, 0)).toBeLessThanOrEqual(
              maxScoredRows,
            );
          }
        },
      ),
    );
  });
});
