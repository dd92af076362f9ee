import { describe, expect, it } from "vitest";
import { holdOut } from "./batching.ts";

const stream = { seed: "42", phase: "em" };

describe("holdOut", () => {
  it("splits all rows, rounds the share, and repeats the split for the same seed and phase", () => {
    // 0.3 · 11 = 3.3
    const { training, validation } = holdOut(11, 0.3, stream);
    expect(validation).toHaveLength(3);
    expect([...training, ...validation].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(holdOut(11, 0.3, stream)).toEqual({ training, validation });
    const others = ["a", "b", "c"].map((seed) => holdOut(11, 0.3, { ...stream, seed }).validation);
    expect(new Set([validation, ...others].map(String)).size).toBeGreaterThan(1);
  });

  it("holds out at least one row, and leaves at least one", () => {
    expect(holdOut(2, 0.01, stream).validation).toHaveLength(1);
    expect(() => holdOut(1, 0.5, stream)).toThrow(
      expect.objectContaining({
        where: "dataset",
        got: "1 rows, of which validationShare 0.5 holds out 1",
      }),
    );
  });
});
