import { describe, expect, it } from "vitest";
import { namedStream } from "@periodic-eval/core/random";
import { exponential } from "./writing.ts";

describe("exponential", () => {
  it("returns the bits of Math.exp from −708 on", () => {
    const random = namedStream("exponential");
    const edges = [0, -0, -1e-9, -0.5, -1.0397, -1.04, -699.99, -700, -708, -800, -Infinity];
    const drawn = Array.from({ length: 200_000 }, (_, index) => -random() * [2, 30, 708][index % 3]!);
    const other = [...edges, ...drawn].filter((x) => !Object.is(exponential(x), Math.exp(x)));
    expect(other).toEqual([]);
  });

  it("returns 0 below −708", () => {
    expect([-708.1, -745, -745.2].map(exponential)).toEqual([0, 0, 0]);
  });
});
