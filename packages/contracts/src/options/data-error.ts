import { PeriodicEvalError } from "../errors.ts";

/** Returns the `data` error for a wrong row, file or folder at `where`. */
export function dataError(
  where: string,
  got: string,
  expected: string,
  fix: string,
  cause?: unknown,
): PeriodicEvalError {
  return new PeriodicEvalError({ code: "data", where, got, expected, fix, cause });
}
