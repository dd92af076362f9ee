import { PeriodicEvalError } from "@periodic-eval/core";
import { expect } from "vitest";

/** Waits for an error as the project's errors are: ours, soon, short, and with all of its four parts. */
export async function refusalOf(work: () => Promise<unknown>): Promise<PeriodicEvalError> {
  const started = performance.now();
  const error: unknown = await work().then(
    () => "it was taken",
    (thrown: unknown) => thrown,
  );
  expect(PeriodicEvalError.is(error), `${String(error)} ${(error as Error).stack ?? ""}`.slice(0, 600)).toBe(
    true,
  );
  const { code, where, got, expected, fix, message } = error as PeriodicEvalError;
  expect(code).toBe("model");
  for (const part of [where, got, expected, fix]) expect(part, message.slice(0, 600)).toMatch(/\S/);
  expect(message.length, message.slice(0, 600)).toBeLessThan(2000);
  expect(performance.now() - started).toBeLessThan(20_000);
  return error as PeriodicEvalError;
}

/** The most memory that this process ever held, in bytes. */
export const peakMemory = (): number => process.resourceUsage().maxRSS * 1024;
