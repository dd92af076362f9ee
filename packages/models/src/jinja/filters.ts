import { unsupported } from "./errors.ts";
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

/** Filters and tests that jinja2 has and this interpreter does not. */
const missing = {
  filter: [
    ..."abs attr batch center e escape filesizeformat forceescape groupby pprint random round slice".split(
      " ",
    ),
    ..."striptags title truncate urlencode urlize wordcount wordwrap xmlattr".split(" "),
  ],
  test: "callable divisibleby escaped filter lower sameas test upper".split(" "),
};

/** Throws for filters and tests that jinja2 has and this interpreter does not. */
export function checkName(kind: "filter" | "test", name: string): void {
  if (missing[kind].includes(name)) unsupported(`the ${kind} ${name}`);
}

/** Returns a filter; undefined if there is none of this name. */
export function filterOf(name: string): Call | undefined {
  checkName("filter", name);
  return functionOf(table, name);
}

/** Returns a test; undefined if there is none of this name. */
export function testOf(name: string): Call | undefined {
  checkName("test", name);
  return functionOf(tests, name);
}
