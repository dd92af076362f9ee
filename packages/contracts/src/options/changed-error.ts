import { PeriodicEvalError, type ErrorDetails } from "../errors.ts";

/** Returns a copy of an error with some details replaced. */
export function changedError(error: PeriodicEvalError, changes: Partial<ErrorDetails>): PeriodicEvalError {
  const { code, where, path, got, expected, fix, cause, detail } = error;
  return new PeriodicEvalError({ code, where, path, got, expected, fix, cause, detail, ...changes });
}
