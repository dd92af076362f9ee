import { configError } from "../../internal/config-error.ts";
import { isRecord } from "../../internal/is-record.ts";
import { noPromise } from "../../internal/no-promise.ts";

/**
 * Returns the metrics that a function of the user returned.
 *
 * @throws PeriodicEvalError `config` for a promise, and for anything but an object: both would pass for no metrics.
 */
export function requireMetrics<T>(where: string, made: T): T {
  if (isRecord(noPromise(where, made))) return made;
  throw configError({
    where,
    value: made,
    expected: "an object of metrics by name",
    fix: "Return, for example, `{ accuracy: kit.rate((row) => row.score === true) }`.",
  });
}
