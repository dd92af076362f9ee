import { describe, expect, it } from "vitest";
import { pythonRandom } from "./python.ts";

const draws = (seed: number, bits: number, count: number) => {
  const { getrandbits } = pythonRandom(seed);
  return Array.from({ length: count }, () => getrandbits(bits));
};

describe("pythonRandom", () => {
  it("draws what CPython draws", () => {
    // CPython 3.11: r = random.Random(seed); [r.getrandbits(bits) for _ in range(5)]
    expect(draws(42, 32, 5)).toEqual([2746317213, 478163327, 107420369, 3184935163, 1181241943]);
    expect(draws(0, 32, 5)).toEqual([3626764237, 1654615998, 3255389356, 3823568514, 1806341205]);
    expect(draws(7, 11, 5)).toEqual([663, 1941, 308, 808, 1333]);
    expect(draws(1099511627781, 32, 5)).toEqual([2166296868, 2220160828, 1153647273, 2850991874, 3976222944]);
    expect(draws(-42, 32, 5)).toEqual([2746317213, 478163327, 107420369, 3184935163, 1181241943]);
  });

  it("goes on past the first 624 words", () => {
    // CPython 3.11: r = random.Random(42); [r.getrandbits(32) for _ in range(2000)][-3:]
    expect(draws(42, 32, 2000).slice(-3)).toEqual([1014096062, 3674130601, 1557724698]);
  });
});
