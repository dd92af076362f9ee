import { configError, isRecord } from "@periodic-eval/contracts/options";
import { isPromise } from "../../model/yield-to-events.ts";

/**
 * Returns the metrics that a function of the user returned.
 *
 * @throws PeriodicEvalError `config` for a promise, and for anything but an object: both would pass for no metrics.
 */
export function requireMetrics<T>(where: string, made: T): T {
  if (isRecord(made) && !isPromise(made)) return made;
  throw configError({
    where,
    ...(isPromise(made) ? { got: "a promise" } : { value: made }),
    expected: "an object of metrics by name",
    fix: "Return the object directly, not from an async function, for example `{ accuracy: kit.rate((row) => row.score === true) }`.",
  });
}
