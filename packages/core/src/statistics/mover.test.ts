import { describe, expect, it } from "vitest";
import { moverDifference, ratioEstimate, shareEstimate } from "./intervals.ts";

describe("moverDifference", () => {
  // Newcombe 1998, Statistics in Medicine 17:873, table II, method 10: score limits, no continuity correction.
  it.each([
    [56, 70, 48, 80, 0.0524, 0.3339],
    [9, 10, 3, 10, 0.1705, 0.809],
    [6, 7, 2, 7, 0.0582, 0.8062],
    [5, 56, 0, 29, -0.0381, 0.1926],
    [0, 10, 0, 20, -0.1611, 0.2775],
    [0, 10, 0, 10, -0.2775, 0.2775],
    [10, 10, 0, 20, 0.6791, 1],
    [10, 10, 0, 10, 0.6075, 1],
  ])("equals Newcombe's method 10 on Wilson limits for %i/%i − %i/%i", (a, m, b, n, low, high) => {
    const { delta, ci95 } = moverDifference(shareEstimate(a, m), shareEstimate(b, n))!;
    expect(delta).toBeCloseTo(a / m - b / n, 12);
    expect(ci95![0]).toBeCloseTo(low, 4);
    expect(ci95![1]).toBeCloseTo(high, 4);
  });

  it("changes sign when its sides are swapped", () => {
    const [one, two] = [shareEstimate(9, 10), shareEstimate(3, 10)];
    const [low, high] = moverDifference(one, two)!.ci95!;
    const turned = moverDifference(two, one)!.ci95!;
    expect(turned[0]).toBeCloseTo(-high, 12);
    expect(turned[1]).toBeCloseTo(-low, 12);
  });

  it("adds the squares of symmetric half-widths", () => {
    // Half-widths of 3 and 4 give 5.
    const difference = moverDifference({ value: 10, ci95: [7, 13] }, { value: 1, ci95: [-3, 5] });
    expect(difference).toEqual({ delta: 9, ci95: [4, 14] });
  });

  it("returns null without a value on one side, and no interval without one on one side", () => {
    expect(moverDifference(shareEstimate(0, 0), shareEstimate(1, 2))).toBeNull();
    const single = ratioEstimate([{ value: 3, weight: 1 }]);
    expect(moverDifference(single, { value: 1, ci95: [0, 2] })).toEqual({ delta: 2, ci95: null });
  });
});
