import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { alphaOfComparison, familyAlpha, holmLevels } from "./planned-comparisons.ts";

const spend = (plans: readonly (number | null)[]) =>
  plans.reduce<number[]>((spent, planned) => [...spent, alphaOfComparison({ spent, planned })], []);

describe("alphaOfComparison", () => {
  it("spends evenly over planned comparisons", () => {
    for (const alpha of spend([5, 5, 5, 5, 5])) expect(alpha).toBeCloseTo(0.01, 12);
  });

  it("spends 6/(π²k²) of the total at the k-th comparison when their number is unknown", () => {
    // 0.05 · 6/π² = 0.030396355…, then a quarter and a ninth of it.
    const [first, second, third] = spend([null, null, null]);
    expect(first).toBeCloseTo(0.0303963550927, 12);
    expect(second).toBeCloseTo(first! / 4, 12);
    expect(third).toBeCloseTo(first! / 9, 12);
  });

  it("spreads only the unspent level when the plan changes", () => {
    // 2 of 5 comparisons spent 0.02; a plan of ten leaves eight for 0.03.
    expect(spend([5, 5, 10])[2]).toBeCloseTo(0.03 / 8, 12);
    // Three were made and two are planned: this is the last, it gets the rest.
    expect(spend([5, 5, 5, 2])[3]).toBeCloseTo(0.02, 12);
  });

  it("spends at most the family's level, however the plan changes", () => {
    const plans = fc.array(fc.option(fc.integer({ min: 1, max: 30 })), { maxLength: 40 });
    fc.assert(
      fc.property(plans, (list) => {
        const spent = spend(list);
        expect(Math.min(0, ...spent)).toBe(0);
        expect(spent.reduce((sum, alpha) => sum + alpha, 0)).toBeLessThanOrEqual(familyAlpha + 1e-12);
      }),
    );
  });
});

describe("holmLevels", () => {
  it("steps down until the first p above its level", () => {
    // Sorted 0.005 ≤ 0.05/4, 0.01 ≤ 0.05/3, 0.03 > 0.05/2: the last two stay at 0.025.
    expect(holmLevels([0.01, 0.04, 0.03, 0.005], 0.05)).toEqual([0.05 / 3, 0.025, 0.025, 0.0125]);
  });

  it("gives null p-values no level", () => {
    expect(holmLevels([null, 0.04], 0.05)).toEqual([null, 0.05]);
    expect(holmLevels([], 0.05)).toEqual([]);
  });
});
