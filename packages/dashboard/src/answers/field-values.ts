import type { AnswerCondition, Json } from "@periodic-eval/core";
import { isMap, ownValue } from "../html/json-field.ts";

/** Returns the value at a path; over a list, the values of its elements. Undefined if there is none. */
export function valueAt(value: Json | undefined, path: string): Json | undefined {
  const [name, ...rest] = path.split(".");
  if (Array.isArray(value)) {
    const values = value.map((one: Json) => valueAt(one, path));
    return values.every((one) => one === undefined) ? undefined : values.map((one) => one ?? null);
  }
  const found = isMap(value) ? ownValue(value, name!) : undefined;
  return rest.length === 0 ? found : valueAt(found, rest.join("."));
}

/** Whether a value meets a condition. */
export function isMet(value: Json | undefined, condition: AnswerCondition): boolean {
  const { is, below, at_most: atMost, above, at_least: atLeast } = condition;
  if (is !== undefined && !is.some((one) => one === (value ?? null))) return false;
  if ([below, atMost, above, atLeast].every((limit) => limit === undefined)) return true;
  return (
    typeof value === "number" &&
    value < (below ?? Infinity) &&
    value <= (atMost ?? Infinity) &&
    value > (above ?? -Infinity) &&
    value >= (atLeast ?? -Infinity)
  );
}
