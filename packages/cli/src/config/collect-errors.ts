import { PeriodicEvalError } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";

/** Throws what is wrong, each message once; several together are an AggregateError, in which none holds others. */
export function throwAll(errors: readonly unknown[]): void {
  const flat = errors.flatMap((error) =>
    error instanceof AggregateError ? (error.errors as readonly unknown[]) : [error],
  );
  const foreign = flat.find((error) => !PeriodicEvalError.is(error));
  if (foreign !== undefined) throw foreign;
  const [first, ...others] = new Map(flat.map((error) => [errorMessage(error), error])).values();
  if (first === undefined) return;
  if (others.length === 0) throw first;
  throw new AggregateError([first, ...others], [first, ...others].map(errorMessage).join("\n"));
}

/** What all of them make; where some fail, every error of theirs is thrown, once all have ended. */
export async function allOf<const T extends readonly unknown[]>(
  made: T,
): Promise<{ -readonly [I in keyof T]: Awaited<T[I]> }> {
  const settled = await Promise.allSettled(made);
  throwAll(settled.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : [])));
  return Promise.all(made);
}
