import { expect } from "vitest";

/** NaN where there is one among the numbers, which no tolerance takes. For tests. */
export function largestDifference(a: ArrayLike<number | bigint>, b: ArrayLike<number | bigint>): number {
  expect(a.length).toBe(b.length);
  let largest = 0;
  for (let i = 0; i < a.length; i++) {
    const difference = Math.abs(Number(a[i]) - Number(b[i]));
    if (Number.isNaN(difference)) return NaN;
    largest = Math.max(largest, difference);
  }
  return largest;
}
