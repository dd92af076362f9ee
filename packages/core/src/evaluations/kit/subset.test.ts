import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nestedSubset, subsetOrder } from "./subset.ts";

describe("subsetOrder", () => {
  it("starts with the values of random.Random(seed).sample", () => {
    // CPython 3.11: random.Random(3).sample(range(12102), 5)
    expect(subsetOrder(3, 12102).slice(0, 5)).toEqual([3898, 9709, 8916, 2136, 6061]);
  });

  it("is a permutation", () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), fc.nat(300), (seed, n) => {
        expect(subsetOrder(seed, n).toSorted((a, b) => a - b)).toEqual(
          Array.from({ length: n }, (_, i) => i),
        );
      }),
    );
  });
});

describe("nestedSubset", () => {
  const items = "abcdefghij".split("");

  it("takes the first n of one order, so that smaller subsets are nested in larger ones", () => {
    const all = nestedSubset(items, { n: null, seed: 42 });
    expect(all.toSorted()).toEqual(items);
    for (let n = 1; n <= 10; n++) expect(nestedSubset(items, { n, seed: 42 })).toEqual(all.slice(0, n));
  });

  it("returns all items when n is larger than their number", () => {
    expect(nestedSubset(items, { n: 200, seed: 42 })).toHaveLength(10);
    expect(nestedSubset([], { n: 200, seed: 42 })).toEqual([]);
  });
});
