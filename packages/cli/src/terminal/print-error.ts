import type { Terminal } from "./terminal.ts";

/** Prints an error: the message of a PeriodicEvalError, which says what to do, and the stack of any other error. */
export async function printError(error: unknown, terminal: Terminal): Promise<void> {
  const { PeriodicEvalError } = await import("@periodic-eval/core");
  const { errorMessage } = await import("@periodic-eval/core/internal");
  const isOurs = (one: unknown) => PeriodicEvalError.is(one);
  const several = error instanceof AggregateError ? (error.errors as readonly unknown[]) : [];
  if (isOurs(error) || !(error instanceof Error)) terminal.err(errorMessage(error));
  else if (several.length > 0 && several.every(isOurs)) terminal.err(several.map(errorMessage).join("\n"));
  else terminal.err(error.stack ?? errorMessage(error));
}
