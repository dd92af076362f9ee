import type { AnyEvaluation } from "@periodic-eval/contracts";

/** Returns a copy of an evaluation that reads its items in another way. A getter such as `minItems` may change its value then. */
export function withItems(evaluation: AnyEvaluation, items: AnyEvaluation["items"]): AnyEvaluation {
  const copy = Object.defineProperties({ ...evaluation }, Object.getOwnPropertyDescriptors(evaluation));
  return Object.defineProperty(copy, "items", { value: items, enumerable: true });
}
