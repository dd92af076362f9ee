import { expect } from "vitest";
import { PeriodicEvalError } from "@periodic-eval/contracts";

/** Returns the PeriodicEvalError with which a promise rejects; fails the test otherwise. */
export async function errorOf(promise: unknown): Promise<PeriodicEvalError> {
  const error = await Promise.resolve(promise).then(
    () => "nothing was thrown",
    (thrown: unknown) => thrown,
  );
  expect(PeriodicEvalError.is(error), String(error)).toBe(true);
  return error as PeriodicEvalError;
}
