import { PeriodicEvalError } from "@periodic-eval/core";

/** What is wrong with a model's files. */
export function failure(
  where: string,
  got: string,
  expected: string,
  fix: string,
  cause?: unknown,
): PeriodicEvalError {
  return new PeriodicEvalError({ code: "model", where, got, expected, fix, cause });
}
