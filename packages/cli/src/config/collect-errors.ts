import { PeriodicEvalError } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/contracts/options";

/**
 * Throws the given errors, the first of each place: nothing for an empty list, one error as it is, several as an AggregateError
 * that is never nested. An error that is not a PeriodicEvalError is thrown alone.
 */
export function throwAll(errors: readonly unknown[]): void {
  const flat = errors.flatMap((error) =>
    error instanceof AggregateError ? (error.errors as readonly unknown[]) : [error],
  );
  const foreign = flat.find((error) => !PeriodicEvalError.is(error));
  if (foreign !== undefined) throw foreign;
  const places = flat.map((error) => (error as PeriodicEvalError).where);
  const [first, ...others] = flat.filter((_, at) => places.indexOf(places[at]!) === at);
  if (first === undefined) return;
  if (others.length === 0) throw first;
  throw new AggregateError([first, ...others], [first, ...others].map(errorMessage).join("\n"));
}

/** Waits for all promises and returns their values. If some fail, throws all of their errors once every promise has settled. */
export async function awaitAll<const T extends readonly unknown[]>(
  promises: T,
): Promise<{ -readonly [I in keyof T]: Awaited<T[I]> }> {
  const settled = await Promise.allSettled(promises);
  throwAll(settled.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : [])));
  return Promise.all(promises);
}

/** Runs a check and returns what it throws: a list of one error, or an empty list. */
export function errorsOf(check: () => void): readonly unknown[] {
  try {
    check();
    return [];
  } catch (error) {
    return [error];
  }
}
