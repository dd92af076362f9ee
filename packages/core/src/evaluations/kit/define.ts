import type { Ability, Evaluation, Row, AnyEvaluation } from "@periodic-eval/contracts";
import { configError, isRecord } from "@periodic-eval/contracts/options";
import { isPromise } from "../../model/in-order.ts";

/**
 * Returns the evaluation unchanged. The call lets TypeScript infer the item, row and graded types and narrow the model to the
 * abilities in `needs`.
 */
export function defineEvaluation<I extends Row, R extends Row, const A extends Ability, G extends R = R>(
  evaluation: Evaluation<I, R, G, A>,
): Evaluation<I, R, G, A> {
  return evaluation;
}

/** Returns a copy of an evaluation that reads its items in another way. A getter such as `minItems` may change its value then. */
export function withItems(evaluation: AnyEvaluation, items: AnyEvaluation["items"]): AnyEvaluation {
  const copy = Object.defineProperties({ ...evaluation }, Object.getOwnPropertyDescriptors(evaluation));
  return Object.defineProperty(copy, "items", { value: items, enumerable: true });
}

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
