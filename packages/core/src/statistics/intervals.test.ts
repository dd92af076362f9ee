import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { clusteredShareEstimate, ratioEstimate, shareEstimate, wilson } from "./intervals.ts";

const ones = (values: readonly number[]) => values.map((value) => ({ value, weight: 1 }));

describe("wilson", () => {
  it("lies in [0, 1], contains the share and narrows with n", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5000 }), fc.nat(5000), (n, some) => {
        const hits = some % (n + 1);
        const [low, high] = wilson(hits, n)!;
        expect(low).toBeGreaterThanOrEqual(0);
        expect(high).toBeLessThanOrEqual(1);
        expect(low).toBeLessThanOrEqual(hits / n + 1e-12);
        expect(high).toBeGreaterThanOrEqual(hits / n - 1e-12);
        const [lowOfMore, highOfMore] = wilson(hits * 2, n * 2)!;
        expect(highOfMore - lowOfMore).toBeLessThan(high - low);
      }),
    );
  });
});

describe("shareEstimate", () => {
  it("returns null without rows", () => {
    expect(shareEstimate(0, 0)).toEqual({ value: null, stderr: null, ci95: null });
  });

  it("has the binomial standard error", () => {
    // √(0.7 · 0.3 / 200) = 0.0324037…
    expect(shareEstimate(140, 200)).toMatchObject({ value: 0.7, stderr: expect.closeTo(0.03240370349, 10) });
  });
});

describe("ratioEstimate", () => {
  it("returns the mean and its t interval for weights of 1", () => {
    // scipy 1.17.1: r = stats.ttest_1samp([.3, -1.2, .8, .1, 2.4, 0, 1.1], 0); r.confidence_interval(.95); stats.sem(a)
    const { value, stderr, ci95 } = ratioEstimate(ones([0.3, -1.2, 0.8, 0.1, 2.4, 0, 1.1]));
    expect(value).toBeCloseTo(0.5, 12);
    expect(stderr).toBeCloseTo(0.4197504927816954, 12);
    expect(ci95![0]).toBeCloseTo(-0.5270924553114755, 12);
    expect(ci95![1]).toBeCloseTo(1.5270924553114755, 12);
  });

  it("returns the t interval over means for clusters of equal size", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -5, max: 5, noNaN: true }), { minLength: 2, maxLength: 12 }),
        fc.integer({ min: 1, max: 9 }),
        (means, size) => {
          const clustered = ratioEstimate(means.map((mean) => ({ value: mean * size, weight: size })));
          const plain = ratioEstimate(ones(means));
          expect(clustered.value).toBeCloseTo(plain.value!, 10);
          expect(clustered.stderr).toBeCloseTo(plain.stderr!, 10);
        },
      ),
    );
  });

  it("equals the pooled value of 3/2 and 1/2 by hand", () => {
    // 4/4 = 1; residuals 3 − 2 = 1 and 1 − 2 = −1; variance 2/1 · (1 + 1)/16 = 0.25.
    const units = [
      { value: 3, weight: 2 },
      { value: 1, weight: 2 },
    ];
    expect(ratioEstimate(units)).toMatchObject({ value: 1, stderr: 0.5 });
  });

  it("returns null for weights of 0 and no interval for one unit", () => {
    expect(ratioEstimate([])).toEqual({ value: null, stderr: null, ci95: null });
    expect(ratioEstimate([{ value: 0, weight: 0 }]).value).toBeNull();
    expect(ratioEstimate(ones([3]))).toEqual({ value: 3, stderr: null, ci95: null });
  });
});

describe("clusteredShareEstimate", () => {
  it("stays within [0, 1]", () => {
    const { ci95 } = clusteredShareEstimate([
      { value: 10, weight: 10 },
      { value: 0, weight: 10 },
      { value: 1, weight: 10 },
    ]);
    expect(ci95![0]).toBe(0);
    expect(ci95![1]).toBeLessThanOrEqual(1);
  });

  it("has Wilson's interval for as many observations as clusters when all agree", () => {
    const clusters = Array.from({ length: 15 }, () => ({ value: 8, weight: 8 }));
    expect(clusteredShareEstimate(clusters)).toMatchObject({ value: 1, ci95: wilson(15, 15)! });
    const third = Array.from({ length: 6 }, () => ({ value: 1, weight: 3 }));
    expect(clusteredShareEstimate(third).ci95).toEqual(wilson(2, 6));
  });
});
