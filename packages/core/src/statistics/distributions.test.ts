import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  betaQuantile,
  normalQuantile,
  normalTail,
  studentQuantile,
  studentTwoSided,
} from "./distributions.ts";

function expectSame(got: number, expected: number, relative = 1e-12): void {
  expect(Math.abs(got - expected)).toBeLessThanOrEqual(relative * Math.abs(expected));
}

describe("normal", () => {
  // scipy 1.17.1: stats.norm.sf(x)
  it.each([
    [0, 0.5],
    [0.1, 0.460172162722971],
    [1, 0.15865525393145707],
    [1.959963984540054, 0.025],
    [2.999, 0.0013543365337271057],
    [3, 0.0013498980316300933],
    [5, 2.866515718791933e-7],
    [8, 6.22096057427174e-16],
    [-1, 0.8413447460685429],
    [37, 5.7255712225239266e-300],
  ])("returns the tail beyond %d", (x, expected) => expectSame(normalTail(x), expected));

  // scipy 1.17.1: stats.norm.ppf(p)
  it.each([
    [0.975, 1.959963984540054],
    [0.5, 0],
    [0.025, -1.9599639845400545],
    [0.8, 0.8416212335729143],
    [0.9995, 3.2905267314919255],
    [1e-6, -4.753424308822899],
  ])("returns the quantile of %d", (p, expected) => expectSame(normalQuantile(p), expected));

  it("returns 0 in the far tail", () => {
    expect(normalTail(40)).toBe(0);
  });
});

describe("Student's t", () => {
  // scipy 1.17.1: 2 * stats.t.sf(abs(t), df)
  it.each([
    [0, 5, 1],
    [0.5, 1, 0.7048327646991335],
    [2, 1, 0.2951672353008665],
    [12.706, 1, 0.05000080235813319],
    [2.5, 2.5, 0.1045699630781554],
    [1, 10, 0.34089313230206],
    [-3.3, 29, 0.0025669142292085896],
    [1.96, 1000, 0.050273184955748736],
    [4, 199, 8.927655875682524e-5],
    [1, 1171, 0.31751709971447245],
    [2.1, 123456, 0.03573086492613695],
    [40, 7, 1.5902179984850364e-9],
    [Infinity, 3, 0],
  ])("returns the tail beyond ±%d with %d degrees of freedom", (t, df, expected) =>
    expectSame(studentTwoSided(t, df), expected, 1e-11),
  );

  // scipy 1.17.1: stats.t.ppf(p, df)
  it.each([
    [0.975, 1, 12.706204736174694],
    [0.975, 2, 4.302652729749462],
    [0.975, 9, 2.262157162798205],
    [0.975, 199, 1.9719565442517533],
    [0.975, 14041, 1.9601329520111468],
    [0.8, 4, 0.9409645772351816],
    [0.9995, 30, 3.6459586350420627],
    [0.05, 7, -1.8945786050900066],
    [0.5, 3, 0],
  ])("returns the quantile of %d with %d degrees of freedom", (p, df, expected) =>
    expectSame(studentQuantile(p, df), expected),
  );

  it("equals Cauchy's closed form with one degree of freedom: 1 − 2 atan(t)/π", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 50, noNaN: true }), (t) => {
        expect(studentTwoSided(t, 1)).toBeCloseTo(1 - (2 * Math.atan(t)) / Math.PI, 12);
      }),
    );
  });

  it("decreases in t and is inverted by its quantile", () => {
    const degrees = fc.integer({ min: 1, max: 20_000 });
    fc.assert(
      fc.property(fc.double({ min: 1e-6, max: 0.4999, noNaN: true }), degrees, (tail, df) => {
        expectSame(studentTwoSided(studentQuantile(tail, df), df) / 2, tail, 1e-11);
      }),
    );
  });
});

describe("beta", () => {
  // scipy 1.17.1: stats.beta.ppf(p, a, b)
  it.each([
    [0.025, 1, 40.5, 0.0006249357076279095],
    [0.025, 0.2, 14.2, 4.616813606331331e-10],
    [0.975, 3.5, 2, 0.9407574053411847],
    [0.5, 7, 7, 0.5],
    [0.025, 72.3, 1200.7, 0.04475957995916524],
    [0.025, 400000.5, 600001, 0.39903990855164323],
    [1e-6, 2, 3, 0.0004083594602042573],
    [0.025, 0.01, 5, 7.803601735629069e-162],
    [0.999, 0.5, 0.5, 0.999997532600929],
  ])("returns the quantile of %d with a = %d, b = %d", (p, a, b, expected) =>
    expectSame(betaQuantile(p, a, b), expected, 1e-11),
  );

  it("equals the closed form for a = 1: 1 − (1 − p)^(1/b)", () => {
    const b = fc.double({ min: 0.1, max: 1e4, noNaN: true });
    fc.assert(
      fc.property(fc.double({ min: 0.001, max: 0.999, noNaN: true }), b, (p, b) => {
        expectSame(betaQuantile(p, 1, b), -Math.expm1(Math.log1p(-p) / b), 1e-11);
      }),
    );
  });
});
