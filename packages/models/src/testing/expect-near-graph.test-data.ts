import { expect } from "vitest";

/**
 * Asserts that results of a graph equal those of separate operations within 1e-4, relative for values above 1; gradients
 * have the same tolerance against PyTorch. Most CPUs are within 1e-5. With AVX-512, oneDNN merges x·sigmoid(x) in a graph,
 * and gradients differ by up to 3e-5.
 */
export function expectNearGraph(got: readonly number[], expected: readonly number[]): void {
  expect(got.length).toBe(expected.length);
  got.forEach((value, i) => {
    const wanted = expected[i]!;
    expect(Math.abs(value - wanted)).toBeLessThan(1e-4 * Math.max(1, Math.abs(wanted)));
  });
}
