import { describe, expect, it } from "vitest";
import { passAtK, passHatK } from "./intervals.ts";

describe("pass@k and pass^k", () => {
  it("equal the values by hand for two drawn from 10 with 3 correct", () => {
    // Neither correct: C(7,2)/C(10,2) = 21/45; both: C(3,2)/C(10,2) = 3/45.
    expect(passAtK(10, 3, 2)).toBeCloseTo(24 / 45, 12);
    expect(passHatK(10, 3, 2)).toBeCloseTo(3 / 45, 12);
  });

  it("are equal for one draw, and null for more draws than samples", () => {
    for (let c = 0; c <= 6; c++) expect(passAtK(6, c, 1)).toBeCloseTo(passHatK(6, c, 1)!, 12);
    expect([passAtK(3, 1, 4), passHatK(3, 1, 4)]).toEqual([null, null]);
  });
});
