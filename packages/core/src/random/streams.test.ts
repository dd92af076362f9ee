import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { fastStream, namedStream, seedOf } from "./streams.ts";

const take = (stream: () => number, count: number) => Array.from({ length: count }, stream);

describe("seedOf", () => {
  it("returns a path", () => {
    expect(seedOf("42", "em", "capability", 20)).toBe("/42/em/capability/#20");
  });

  it("is injective", () => {
    // The separator, the escape characters and their codes: an alphabet small enough to find collisions.
    const part = fc.oneof(
      fc.string({ unit: fc.constantFrom("/", "~", "#", "0", "1", "2"), maxLength: 3 }),
      fc.nat(20),
    );
    const parts = fc.array(part, { maxLength: 3 });
    fc.assert(
      fc.property(parts, parts, (a, b) => {
        expect(seedOf(...a) === seedOf(...b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
      { numRuns: 2000 },
    );
    expect(new Set([seedOf(), seedOf(""), seedOf("", ""), seedOf(1), seedOf("1"), seedOf("#1")]).size).toBe(
      6,
    );
  });
});

describe("fastStream", () => {
  it("is sfc32 with its state from the named stream of the seed", () => {
    // The generator as in PractRand, with big integers that are cut to 32 bits.
    const start = namedStream("a");
    const cut = (value: bigint) => BigInt.asUintN(32, value);
    let [a, b, c, counter] = [...take(start, 3).map((draw) => BigInt(Math.floor(draw * 2 ** 32))), 1n] as [
      bigint,
      bigint,
      bigint,
      bigint,
    ];
    const expected = Array.from({ length: 1000 }, () => {
      const drawn = cut(a + b + counter);
      counter = cut(counter + 1n);
      a = b ^ (b >> 9n);
      b = cut(c + (c << 3n));
      c = cut(cut((c << 21n) | (c >> 11n)) + drawn);
      return Number(drawn) / 2 ** 32;
    });
    expect(take(fastStream("a"), 1000)).toEqual(expected);
  });

  it("has the mean and the lag correlation of a uniform stream", () => {
    const numbers = take(fastStream("uniform"), 100_000);
    // Five standard errors of 0.289/√1e5 and 1/√1e5: one false alarm in two million seeds.
    const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
    expect(Math.abs(mean - 0.5)).toBeLessThan(5 * 0.289 * 10 ** -2.5);
    const products = numbers.slice(1).map((number, at) => 12 * (number - 0.5) * (numbers[at]! - 0.5));
    const lag = products.reduce((sum, product) => sum + product, 0) / products.length;
    expect(Math.abs(lag)).toBeLessThan(5 * 10 ** -2.5);
  });
});

describe("namedStream", () => {
  it("repeats for the same seed and differs for another", () => {
    expect(take(namedStream("a"), 5)).toEqual(take(namedStream("a"), 5));
    expect(take(namedStream("a"), 5)).not.toEqual(take(namedStream("b"), 5));
  });

  it("distinguishes characters that share their low byte", () => {
    // seedrandom alone treats U+0161 like U+0061.
    expect(namedStream("š")()).not.toBe(namedStream("a")());
  });

  it("stays in [0, 1) with the mean of a uniform stream", () => {
    const numbers = take(namedStream("uniform"), 10_000);
    expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...numbers)).toBeLessThan(1);
    // Standard error of the mean is 1/√(12·10000) = 0.0029; the seed is fixed, so the test is deterministic.
    expect(numbers.reduce((sum, x) => sum + x) / 10_000).toBeCloseTo(0.5, 2);
  });

  it("does not call Math.random", () => {
    const spy = vi.spyOn(Math, "random");
    namedStream("a")();
    expect(spy).not.toHaveBeenCalled();
    spy.mockRestore();
  });
});
