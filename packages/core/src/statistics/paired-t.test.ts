import { describe, expect, it } from "vitest";
import { detectableMean, pairedT, welchOf } from "./paired-tests.ts";

const rows = (now: readonly number[], before: readonly number[]) =>
  now.map((value, i) => ({ now: { value, weight: 1 }, before: { value: before[i]!, weight: 1 } }));

describe("pairedT", () => {
  it("equals the classical paired test for rows", () => {
    // scipy 1.17.1: r = stats.ttest_rel(a, b); r.pvalue; r.confidence_interval(.95)
    const a = [0.3, -1.2, 0.8, 0.1, 2.4, 0, 1.1];
    const b = [0.1, -1, 0.2, -0.4, 1.1, 0.3, 0.2];
    const { value, ci95, p, df } = pairedT(rows(a, b));
    expect(value).toBeCloseTo(0.42857142857142855, 12);
    expect(p).toBeCloseTo(0.09678222245455176, 12);
    expect(ci95![0]).toBeCloseTo(-0.10462516762524571, 12);
    expect(ci95![1]).toBeCloseTo(0.9617680247681029, 12);
    expect(df).toBe(6);
  });

  it("equals the delta method by hand for ratios", () => {
    // Now 4/4 with parts (3−2)/4 and (1−2)/4; then 3/4 with parts (2−1.5)/4 and (1−1.5)/4.
    // Delta 1/4; differences of parts 1/8 and −1/8; variance 2/1 · 2/64 = 1/16; t = 1 with one degree: p = 1/2.
    const { value, stderr, p } = pairedT([
      { now: { value: 3, weight: 2 }, before: { value: 2, weight: 2 } },
      { now: { value: 1, weight: 2 }, before: { value: 1, weight: 2 } },
    ]);
    expect([value, stderr, p]).toEqual([0.25, 0.25, expect.closeTo(0.5, 12)]);
  });

  it("uses the sign test without an interval when all units change equally", () => {
    expect(pairedT(rows([1, 1], [0, 0]))).toEqual({ value: 1, stderr: 0, ci95: null, p: 1 / 2, df: 1 });
    // scipy 1.17.1: stats.binomtest(8, 8).pvalue
    expect(pairedT(rows(Array(8).fill(1), Array(8).fill(0))).p).toBe(0.0078125);
    // Each 0.1 more, except for rounding.
    const apart = pairedT(rows([0.4, 0.3, 1.2], [0.3, 0.2, 1.1]));
    expect(apart).toMatchObject({ value: expect.closeTo(0.1, 12), ci95: null, p: 1 / 4 });
    expect(pairedT(rows([2, 3], [2, 3]))).toMatchObject({ value: 0, ci95: null, p: 1 });
    expect(pairedT(rows([0.1 + 0.2, 0.1 + 0.2], [0.3, 0.3]))).toMatchObject({ ci95: null, p: 1 });
  });

  it("returns a difference without a test for one unit, and null for none", () => {
    expect(pairedT(rows([2], [1]))).toMatchObject({ value: 1, p: null, ci95: null });
    expect(pairedT([])).toMatchObject({ value: null, p: null });
  });
});

describe("welchOf", () => {
  it("equals Welch's test on the two sides' differences", () => {
    // scipy 1.17.1: r = stats.ttest_ind(a − b, c, equal_var=False); r.pvalue, r.df, r.confidence_interval(.95)
    const a = [0.3, -1.2, 0.8, 0.1, 2.4, 0, 1.1];
    const b = [0.1, -1, 0.2, -0.4, 1.1, 0.3, 0.2];
    const c = [0.5, -0.5, -1, 0.25];
    const { value, ci95, p, df } = welchOf(pairedT(rows(a, b)), pairedT(rows(c, [0, 0, 0, 0])));
    expect(value).toBeCloseTo(0.6160714285714286, 12);
    expect(p).toBeCloseTo(0.18614077623174996, 12);
    expect(df).toBeCloseTo(5.4486814007242925, 10);
    expect(ci95![0]).toBeCloseTo(-0.40576241587710093, 10);
    expect(ci95![1]).toBeCloseTo(1.6379052730199581, 10);
  });

  it("counts the ways to separate the units when each side changes uniformly, without an interval", () => {
    const alike = pairedT(rows([2, 3], [1, 2]));
    const unmoved = pairedT(rows([4, 5, 6], [4, 5, 6]));
    // Two of 5 units in C(5, 2) = 10 ways, in both directions.
    expect(welchOf(alike, unmoved)).toMatchObject({ value: 1, stderr: 0, ci95: null, p: 2 / 10 });
    expect(welchOf(alike, alike)).toMatchObject({ value: 0, ci95: null, p: 1 });
  });

  it("has no test when one side has a single unit or none", () => {
    const alike = pairedT(rows([2, 3], [1, 2]));
    expect(welchOf(alike, pairedT(rows([2], [1])))).toMatchObject({ value: 0, p: null, ci95: null });
    expect(welchOf(alike, pairedT([]))).toMatchObject({ value: null, p: null });
  });
});

it("detects (t(1 − α/2) + t(0.8)) standard errors", () => {
  // scipy 1.17.1: stats.t.ppf(.975, 9) = 2.262157162798205, stats.t.ppf(.8, 9) = 0.8834038596855346
  expect(detectableMean({ stderr: 2, df: 9 }, 0.05)).toBeCloseTo(
    2 * (2.262157162798205 + 0.8834038596855346),
    10,
  );
  expect(detectableMean({ stderr: 0, df: 9 }, 0.05)).toBeNull();
  expect(detectableMean({ stderr: null, df: 0 }, 0.05)).toBeNull();
});
