import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { narrowToBf16, narrowToF16, widenBf16, widenF16 } from "./dtypes.ts";

const everyPattern = Uint16Array.from({ length: 65_536 }, (_, i) => i);

describe.each([
  { name: "bfloat16", widen: widenBf16, narrow: narrowToBf16 },
  { name: "float16", widen: widenF16, narrow: narrowToF16 },
])("$name", ({ widen, narrow }) => {
  it("narrows every representable number to itself, and NaN to NaN", () => {
    const values = widen(everyPattern);
    const back = narrow(values);
    for (const bits of everyPattern) {
      if (Number.isNaN(values[bits])) expect(widen(back.slice(bits, bits + 1))[0]).toBeNaN();
      else if (back[bits] !== bits) expect.fail(`${bits} became ${back[bits]}`);
    }
  });

  it("rounds to the nearest representable number, ties to even", () => {
    const finite = widen(everyPattern).filter((value) => Number.isFinite(value));
    const grid = [...new Set(finite)].sort((a, b) => a - b);
    const at = fc.integer({ min: 0, max: grid.length - 2 });
    fc.assert(
      fc.property(at, fc.double({ min: 0, max: 1, noNaN: true }), (i, share) => {
        const [low, high] = [grid[i]!, grid[i + 1]!];
        const value = Math.fround(low + share * (high - low));
        const [bits] = narrow(Float32Array.of(value));
        const found = widen(Uint16Array.of(bits!))[0]!;
        const [below, above] = [value - low, high - value];
        if (below !== above) expect(found).toBe(below < above ? low : high);
        else if (low !== high) expect(bits! & 1).toBe(0);
      }),
      { numRuns: 2000 },
    );
  });
});

it("rounds half-way cases to even and too large values to infinity", () => {
  // 1 + 2^-8 is half-way between 1 (0x3f80) and 1 + 2^-7 (0x3f81); 1 + 3·2^-8 half-way between 0x3f81 and 0x3f82.
  expect([...narrowToBf16(Float32Array.of(1 + 2 ** -8, 1 + 3 * 2 ** -8, 3.4e38, -0))]).toEqual([
    0x3f80, 0x3f82, 0x7f80, 0x8000,
  ]);
  // 65504 is the largest half; 65520 is half-way to the next power of two and becomes infinite; 2^-25 is half the
  // smallest half and becomes 0, and the next float32 above it becomes the smallest half.
  expect([...narrowToF16(Float32Array.of(65504, 65519, 65520, 2 ** -25, 2 ** -25 * 1.0000002))]).toEqual([
    0x7bff, 0x7bff, 0x7c00, 0, 1,
  ]);
});
