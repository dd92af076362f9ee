import { expect } from "vitest";

/** Returns the largest absolute difference; NaN if any difference is NaN, which fails every tolerance. */
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
