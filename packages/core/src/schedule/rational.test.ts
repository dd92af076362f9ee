import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decimalOf, multipleOf } from "./crossings.ts";

describe("decimalOf", () => {
  it.each([
    [0.1, 1n, 1],
    [20, 20n, 0],
    [33.333333333333336, 33333333333333336n, 15],
    [1e-7, 1n, 7],
    [1.5e-8, 15n, 9],
    [1e21, 10n ** 21n, 0],
    [0, 0n, 0],
  ])("reads %d as its shortest decimal", (value, numerator, scale) => {
    expect(decimalOf(value)).toEqual({ numerator, scale });
  });

  it("returns the same number as its multiple by 1", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(multipleOf(decimalOf(value), 1)).toBe(value === 0 ? 0 : value);
      }),
    );
  });

  it("multiplies decimals exactly", () => {
    // In floating point 0.1 · 3 is 0.30000000000000004.
    expect(multipleOf(decimalOf(0.1), 3)).toBe(0.3);
  });
});
