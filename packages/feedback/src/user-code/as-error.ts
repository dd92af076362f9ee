import { PeriodicEvalError } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";

/** Returns the thrown value if it is an Error whose message can be read, else a new Error that describes it. */
export function asError(thrown: unknown): Error {
  try {
    if (thrown instanceof Error && (PeriodicEvalError.is(thrown) || typeof thrown.message === "string"))
      return thrown;
  } catch {
    // It is a proxy or has a getter that throws.
  }
  return new Error(errorMessage(thrown), { cause: thrown });
}
