import { PeriodicEvalError } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";

/** Returns an error that user code threw, or an Error for any other thrown value, and for an error that cannot be read. */
export function asError(thrown: unknown): Error {
  try {
    if (thrown instanceof Error && (PeriodicEvalError.is(thrown) || typeof thrown.message === "string"))
      return thrown;
  } catch {
    // A proxy or a getter that throws.
  }
  return new Error(errorMessage(thrown), { cause: thrown });
}
