import { describe, expect, it } from "vitest";
import { namedStream } from "../random/streams.ts";
import { exponential } from "./exponential.ts";

describe("exponential", () => {
  it("returns the bits of Math.exp", () => {
    const random = namedStream("exponential");
    const edges = [0, -0, -1e-9, -0.5, -1.0397, -1.04, -699.99, -700, -745, -800, -Infinity];
    const drawn = Array.from({ length: 200_000 }, (_, index) => -random() * [2, 30, 710][index % 3]!);
    const other = [...edges, ...drawn].filter((x) => !Object.is(exponential(x), Math.exp(x)));
    expect(other).toEqual([]);
  });
});
