import { expect } from "vitest";

export interface Tolerance {
  /** Allowed difference near 0; default 0. */
  readonly absolute?: number;
  /** Allowed difference as a fraction of the expected number; default 0. */
  readonly relative?: number;
}

/** Expects |got − expected| ≤ absolute + relative · |expected|. NaN fails. */
export function expectClose(
  got: number,
  expected: number,
  { absolute = 0, relative = 0 }: Tolerance,
  what: string,
): void {
  expect(Math.abs(got - expected), `${what}: got ${got}, expected ${expected}`).toBeLessThanOrEqual(
    absolute + relative * Math.abs(expected),
  );
}
