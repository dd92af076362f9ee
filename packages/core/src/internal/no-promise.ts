import { configError } from "./config-error.ts";
import { isPromise } from "./maybe-async.ts";

/**
 * Returns what a function of the user returned. A promise would pass for an object without properties, or for true.
 *
 * @throws PeriodicEvalError `config` for a promise.
 */
export function noPromise<T>(where: string, value: T): T {
  if (!isPromise(value)) return value;
  // A rejection would otherwise be reported in addition to the error below.
  value.then(undefined, () => undefined);
  throw configError({
    where,
    got: "a promise",
    expected: "the value itself",
    fix: "Remove `async`: nothing awaits this function. Wait for promises in items, measure or grade.",
  });
}
