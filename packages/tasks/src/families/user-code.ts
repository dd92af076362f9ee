import { PeriodicEvalError, type Awaitable } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/contracts/options";

/** A call of a function that the user supplied. */
export interface UserCall {
  /** The task and documents. */
  readonly place: string;
  /** The function: `score`, `engine`. */
  readonly name: string;
  readonly code: "config" | "model";
  readonly signal: AbortSignal;
}

/**
 * Runs a custom function.
 *
 * @throws PeriodicEvalError that says which function failed for which documents, with the error as its cause; the signal's reason
 *   after an abort; a PeriodicEvalError of the function unchanged.
 */
export async function runUserCode<T>(
  { place, name, code, signal }: UserCall,
  work: () => Awaitable<T>,
): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    signal.throwIfAborted();
    if (PeriodicEvalError.is(cause)) throw cause;
    throw new PeriodicEvalError({
      code,
      where: `${place}: ${name}`,
      got: `the error ${JSON.stringify(errorMessage(cause))} thrown by your code`,
      expected: "a result",
      fix: "Correct the function: the error's cause has its stack.",
      cause,
    });
  }
}

/** Lists the ids of documents, the first three by name. */
export function idsText(ids: readonly string[]): string {
  const named = ids.slice(0, 3).map((id) => `"${id}"`);
  return [...named, ...(ids.length > 3 ? [`and ${ids.length - 3} more`] : [])].join(", ");
}
