import { describe, expect, it } from "vitest";
import { pythonRandom } from "./python.ts";

const draws = (seed: number, bits: number, count: number) => {
  const { getrandbits } = pythonRandom(seed);
  return Array.from({ length: count }, () => getrandbits(bits));
};

describe("pythonRandom", () => {
  it("returns the numbers of CPython", () => {
    // CPython 3.11: r = random.Random(seed); [r.getrandbits(bits) for _ in range(5)]
    expect(draws(42, 32, 5)).toEqual([2746317213, 478163327, 107420369, 3184935163, 1181241943]);
    expect(draws(0, 32, 5)).toEqual([3626764237, 1654615998, 3255389356, 3823568514, 1806341205]);
    expect(draws(7, 11, 5)).toEqual([663, 1941, 308, 808, 1333]);
    expect(draws(1099511627781, 32, 5)).toEqual([2166296868, 2220160828, 1153647273, 2850991874, 3976222944]);
    expect(draws(-42, 32, 5)).toEqual([2746317213, 478163327, 107420369, 3184935163, 1181241943]);
  });

  it("regenerates its state after 624 outputs", () => {
    // CPython 3.11: r = random.Random(42); [r.getrandbits(32) for _ in range(2000)][-3:]
    expect(draws(42, 32, 2000).slice(-3)).toEqual([1014096062, 3674130601, 1557724698]);
  });

  it.each([
    // CPython 3.11: r = random.Random(seed); [r.sample(range(n), k) for _ in range(2)]
    [1234, 100, 5, [99, 56, 14, 0, 11], [74, 4, 85, 88, 10]],
    [1234, 21, 5, [14, 3, 0, 2, 1], [2, 3, 11, 7, 0]],
    [1234, 22, 5, [14, 3, 0, 2, 18], [1, 21, 2, 3, 11]],
    [1234, 85, 6, [56, 14, 0, 11, 74, 4], [10, 12, 45, 30, 2, 3]],
    [1234, 86, 6, [56, 14, 0, 11, 74, 4], [85, 10, 12, 45, 30, 2]],
    [1234, 3, 3, [1, 0, 2], [0, 2, 1]],
    [7, 1, 1, [0], [0]],
    [
      1234,
      7473,
      8,
      [6374, 3610, 957, 61, 742, 7462, 6610, 4769],
      [286, 5501, 5677, 687, 806, 6279, 2905, 1939],
    ],
  ])("returns the samples of CPython for seed %i: of %i, %i", (seed, n, k, first, second) => {
    const { sample } = pythonRandom(seed);
    expect([sample(n, k), sample(n, k)]).toEqual([first, second]);
  });

  it("returns an empty sample for k = 0 and throws for k > n", () => {
    const { sample } = pythonRandom(1);
    expect([sample(0, 0), sample(5, 0)]).toEqual([[], []]);
    expect(() => sample(3, 4)).toThrow("pythonRandom.sample: got 4 of 3");
  });
});
