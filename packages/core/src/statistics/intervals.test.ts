import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  clusteredShareEstimate,
  partsShareEstimate,
  ratioEstimate,
  shareEstimate,
  wilson,
} from "./intervals.ts";

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
  const equal = (questions: number, size: number, hits: number) =>
    Array.from({ length: questions }, () => ({ value: hits / questions, weight: size }));

  // scipy 1.17.1, with N = n²/Σ m(1 + (m − 1)/2), x = hits · N/n, y = N − x:
  // [beta.ppf(.025, x, y + 1), beta.isf(.025, x + 1, y)], 0 where x = 0, 1 where y = 0
  it.each([
    // The neighbours of 0 of 72 must not jump: t and Wilson limits gave [0, 0.324], [0, 0.047], [0, 0.071].
    ["0 of 8 × 9", equal(8, 9, 0), [0, 0.22599131483617044]],
    ["1 of 8 × 9", equal(8, 9, 1), [4.3049846045178907e-10, 0.24919004190240396]],
    ["2 of 8 × 9", equal(8, 9, 2), [4.984435412408477e-6, 0.27100389205343617]],
    ["36 of 8 × 9", equal(8, 9, 36), [0.2338218668074686, 0.7661781331925314]],
    ["71 of 8 × 9", equal(8, 9, 71), [0.750809958097596, 0.9999999995695016]],
    ["72 of 8 × 9", equal(8, 9, 72), [0.7740086851638296, 1]],
    ["137 of 200 × 10", equal(200, 10, 137), [0.04477810431152374, 0.09952708515828045]],
    ["3 of 20, exact binomial", equal(20, 1, 3), [0.0320709371854637, 0.37892682654531396]],
    ["1.25 of 3", equal(3, 1, 1.25), [0.020477242880824826, 0.9366786491768371]],
    [
      "11 of 58 in questions of 9, 9, 8, 9, 4, 1, 9 and 9",
      [9, 9, 8, 9, 4, 1, 9, 9].map((weight, at) => ({ value: at < 2 ? 5 : at < 3 ? 1 : 0, weight })),
      [0.030236342361789775, 0.5036502566627418],
    ],
    [
      "0 of 71, without one ungraded answer",
      [...equal(7, 9, 0), { value: 0, weight: 8 }],
      [0, 0.2265182025196113],
    ],
  ])("equals SciPy's beta quantiles for %s", (_, clusters, expected) => {
    const { ci95 } = clusteredShareEstimate(clusters);
    expect(ci95![0]).toBeCloseTo(expected[0]!, 12);
    expect(ci95![1]).toBeCloseTo(expected[1]!, 12);
  });

  const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 2, maxLength: 12 });
  const limits = (weights: readonly number[], hits: number) => {
    const n = weights.reduce((sum, weight) => sum + weight, 0);
    return clusteredShareEstimate(weights.map((weight) => ({ value: (hits * weight) / n, weight }))).ci95!;
  };

  it("has limits that rise with the hits, mirror those of the misses, and contain the share", () => {
    fc.assert(
      fc.property(sizes, fc.double({ min: 0, max: 1, noNaN: true }), (weights, part) => {
        const n = weights.reduce((sum, weight) => sum + weight, 0);
        const hits = Math.floor(part * (n - 1));
        const [low, high] = limits(weights, hits);
        const [lowOfNext, highOfNext] = limits(weights, hits + 1);
        expect(lowOfNext).toBeGreaterThan(low);
        expect(highOfNext).toBeGreaterThan(high);
        expect(low).toBeLessThanOrEqual(hits / n);
        expect(high).toBeGreaterThan(hits / n);
        expect(limits(weights, n - hits)[0]).toBeCloseTo(1 - high, 12);
      }),
    );
  });

  it("does not depend on which clusters have the hits, and ignores clusters without rows", () => {
    const spread = equal(5, 4, 5);
    const [none, all] = [
      { value: 0, weight: 4 },
      { value: 4, weight: 4 },
    ];
    const concentrated = [all, { value: 1, weight: 4 }, none, none, none, { value: 0, weight: 0 }];
    expect(clusteredShareEstimate(concentrated).ci95).toEqual(clusteredShareEstimate(spread).ci95);
  });

  it("has a value and no interval for one cluster, however many hits it has", () => {
    for (const value of [0, 3, 9])
      expect(clusteredShareEstimate([{ value, weight: 9 }])).toEqual({
        value: value / 9,
        stderr: null,
        ci95: null,
      });
  });
});

describe("partsShareEstimate", () => {
  it("stays within [0, 1]", () => {
    const { ci95 } = partsShareEstimate([
      { value: 10, weight: 10 },
      { value: 0, weight: 10 },
      { value: 1, weight: 10 },
    ]);
    expect(ci95![0]).toBe(0);
    expect(ci95![1]).toBeLessThanOrEqual(1);
  });

  it("has Wilson's interval for as many observations as units when all agree", () => {
    const units = Array.from({ length: 15 }, () => ({ value: 8, weight: 8 }));
    expect(partsShareEstimate(units)).toMatchObject({ value: 1, ci95: wilson(15, 15)! });
    const third = Array.from({ length: 6 }, () => ({ value: 1, weight: 3 }));
    expect(partsShareEstimate(third).ci95).toEqual(wilson(2, 6));
  });
});
