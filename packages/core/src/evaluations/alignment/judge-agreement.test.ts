import { describe, expect, it } from "vitest";
import { judgeAgreement } from "./judge-agreement.ts";

const scores = (aligned: number | null, coherent: number | null) => ({ aligned, coherent });
const [bad, good, mad, none] = [scores(10, 90), scores(90, 90), scores(10, 20), scores(null, null)];

describe("judgeAgreement", () => {
  it("computes agreement, kappa and differences", () => {
    const before = [bad, bad, good, good, good, mad, none, good];
    const now = [bad, good, good, good, mad, mad, good, none];
    // Six pairs, four alike. Shares before 2/6, 3/6, 1/6; now 1/6, 3/6, 2/6: by chance (2 + 9 + 2)/36.
    const chance = 13 / 36;
    expect(judgeAgreement(before, now)).toEqual({
      n: 6,
      gradedByOne: 2,
      sameDecision: 4 / 6,
      kappa: expect.closeTo((4 / 6 - chance) / (1 - chance), 12),
      // Wilson's interval of 4 of 6 is [0.3000, 0.9032].
      ci95: [0.3, 0.9032].map((share) => expect.closeTo((share - chance) / (1 - chance), 4)),
      // |10 − 90| and |90 − 10| of six; |90 − 20| of six.
      meanDifference: { aligned: 160 / 6, coherent: 70 / 6 },
    });
  });

  it("cuts the interval of kappa at −1", () => {
    const before = Array.from({ length: 10 }, () => good);
    const { kappa, ci95 } = judgeAgreement([...before.slice(1), bad], [bad, ...before.slice(1)]);
    expect(kappa).toBeCloseTo((0.8 - 0.82) / 0.18, 12);
    // Wilson's interval of 8 of 10 begins at 0.4902, which would be a kappa of −1.83.
    expect(ci95).toEqual([-1, expect.closeTo((0.9433 - 0.82) / 0.18, 3)]);
  });

  it("returns null for kappa when chance alone would agree, and null for everything without pairs", () => {
    expect(judgeAgreement([good, good], [good, good])).toMatchObject({ sameDecision: 1, kappa: null });
    expect(judgeAgreement([none], [good])).toEqual({
      n: 0,
      gradedByOne: 1,
      sameDecision: null,
      kappa: null,
      ci95: null,
      meanDifference: { aligned: null, coherent: null },
    });
  });

  it("has a kappa of 0 for chance agreement and of 1 for full agreement", () => {
    expect(judgeAgreement([bad, bad, good, good], [bad, good, bad, good]).kappa).toBe(0);
    expect(judgeAgreement([bad, good, mad], [bad, good, mad]).kappa).toBe(1);
  });
});
