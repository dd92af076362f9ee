import { attributeOf } from "./attributes.ts";
import { unsupported, fail } from "./errors.ts";
import { numberFilters } from "./number-filters.ts";
import { functionOf, type Filters } from "./parameters.ts";
import { selectionFilters } from "./selection-filters.ts";
import { sequenceFilters } from "./sequence-filters.ts";
import { tests } from "./tests.ts";
import { textFilters } from "./text-filters.ts";
import { isTrue } from "./sequences.ts";
import { str } from "./print.ts";
import { Undefined, isText, orElse, typeName, type Call, type Value } from "./values.ts";

function orDefault(value: Value, replacement: Value = "", isBoolean: Value = false): Value {
  return value instanceof Undefined || (isTrue(isBoolean) && !isTrue(value)) ? replacement : value;
}

function attribute(value: Value, name: Value): Value {
  if (value instanceof Undefined && !(isText(name) && str(name).startsWith("__"))) return value.fail();
  if (!isText(name)) return fail(`attribute name must be string, not '${typeName(name)}'`);
  return orElse(attributeOf(value, str(name)), () => new Undefined(`no attribute ${str(name)}`));
}

const table: Filters = {
  ...textFilters,
  ...numberFilters,
  ...sequenceFilters,
  ...selectionFilters(filterOf, testOf),
  attr: ["obj name", attribute],
  d: ["value default_value? boolean?", orDefault],
  default: ["value default_value? boolean?", orDefault],
};

const unsupportedFilters = new Set([
  "filesizeformat",
  "pprint",
  "random",
  "striptags",
  "urlencode",
  "urlize",
  "wordwrap",
  "xmlattr",
]);

/** Throws for filters that jinja2 has and this interpreter does not. */
export function checkFilter(name: string): void {
  if (unsupportedFilters.has(name)) unsupported(`the filter ${name}`);
}

/** Returns a filter; undefined if there is none of this name. */
export function filterOf(name: string): Call | undefined {
  checkFilter(name);
  return functionOf(table, name);
}

/** Returns a test; undefined if there is none of this name. */
export function testOf(name: string): Call | undefined {
  return functionOf(name === "filter" ? filterTest : tests, name);
}

const isFilter = (name: string) => Object.hasOwn(table, name) || unsupportedFilters.has(name);
const filterTest: Filters = { filter: ["value", (value: Value) => isText(value) && isFilter(str(value))] };
