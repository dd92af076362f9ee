import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { PeriodicEvalError } from "../errors.ts";
import { namedStream, seedOf, statefulStream } from "./streams.ts";

const take = (stream: () => number, count: number) => Array.from({ length: count }, stream);

describe("seedOf", () => {
  it("reads as a path", () => {
    expect(seedOf("42", "em", "capability", 20)).toBe("/42/em/capability/#20");
  });

  it("is injective", () => {
    // A small alphabet, so that collisions would be found: the joiner, the escape marks and their codes.
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

  it("refuses a number that is none", () => {
    expect(() => seedOf("a", Number.NaN)).toThrow(PeriodicEvalError);
  });
});

describe("namedStream", () => {
  it("repeats itself under the same name and differs under another", () => {
    expect(take(namedStream("a"), 5)).toEqual(take(namedStream("a"), 5));
    expect(take(namedStream("a"), 5)).not.toEqual(take(namedStream("b"), 5));
  });

  it("keeps scripts apart whose characters share their low byte", () => {
    // seedrandom itself reads U+0161 and U+0061 alike.
    expect(namedStream("š")()).not.toBe(namedStream("a")());
  });

  it("stays in [0, 1) with the mean of a uniform stream", () => {
    const numbers = take(namedStream("uniform"), 10_000);
    expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...numbers)).toBeLessThan(1);
    // Standard error of the mean is 1/√(12·10000) = 0.0029; the seed is fixed, so this cannot flicker.
    expect(numbers.reduce((sum, x) => sum + x) / 10_000).toBeCloseTo(0.5, 2);
  });

  it("leaves Math.random alone", () => {
    const spy = vi.spyOn(Math, "random");
    namedStream("a")();
    statefulStream("a").next();
    expect(spy).not.toHaveBeenCalled();
    spy.mockRestore();
  });
});

describe("statefulStream", () => {
  it("gives the numbers of namedStream and goes on from a kept state", () => {
    const stream = statefulStream("s");
    expect(take(stream.next, 7)).toEqual(take(namedStream("s"), 7));
    const resumed = statefulStream("whatever", stream.state());
    expect(take(resumed.next, 300)).toEqual(take(stream.next, 300));
    expect(resumed.state()).toBe(stream.state());
  });

  it("refuses a state that no stream gave", () => {
    for (const state of ["", "{}", "00".repeat(258), statefulStream("s").state().slice(2)]) {
      expect(() => statefulStream("s", state)).toThrow(/516 hexadecimal digits/);
    }
  });
});
