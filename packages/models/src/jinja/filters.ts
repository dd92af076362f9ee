import { numberFilters } from "./number-filters.ts";
import { functionOf, type Filters } from "./parameters.ts";
import { selectionFilters } from "./selection-filters.ts";
import { sequenceFilters } from "./sequence-filters.ts";
import { tests } from "./tests.ts";
import { textFilters } from "./text-filters.ts";
import { isTrue } from "./sequences.ts";
import { Undefined, type Call, type Value } from "./values.ts";

function orDefault(value: Value, replacement: Value = "", isBoolean: Value = false): Value {
  return value instanceof Undefined || (isTrue(isBoolean) && !isTrue(value)) ? replacement : value;
}

const table: Filters = {
  ...textFilters,
  ...numberFilters,
  ...sequenceFilters,
  ...selectionFilters(filterOf, testOf),
  d: ["value default_value? boolean?", orDefault],
  default: ["value default_value? boolean?", orDefault],
};

/** Returns a filter; undefined if there is none of this name. */
export function filterOf(name: string): Call | undefined {
  return functionOf(table, name);
}

/** Returns a test; undefined if there is none of this name. */
export function testOf(name: string): Call | undefined {
  return functionOf(tests, name);
}
