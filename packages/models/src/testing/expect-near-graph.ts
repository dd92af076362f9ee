import { expect } from "vitest";

/**
 * What a graph gives and what the operations give one by one: within 1e-4, of what is greater than 1 relatively, as near as
 * gradients have to be to PyTorch's. Most processors are within 1e-5; where one has AVX-512, oneDNN puts x·sigmoid(x)
 * together in a graph, and gradients differ by up to 3e-5. For tests.
 */
export function expectNearGraph(got: readonly number[], expected: readonly number[]): void {
  expect(got.length).toBe(expected.length);
  got.forEach((value, i) => {
    const wanted = expected[i]!;
    expect(Math.abs(value - wanted)).toBeLessThan(1e-4 * Math.max(1, Math.abs(wanted)));
  });
}
