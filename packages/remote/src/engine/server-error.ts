import { PeriodicEvalError, type ErrorDetails } from "@periodic-eval/core";

/** Returns the error for a server whose numbers cannot be used. */
export const serverError = (details: Omit<ErrorDetails, "code">): PeriodicEvalError =>
  new PeriodicEvalError({ code: "model", ...details });
