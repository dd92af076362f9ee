import { attributeOf } from "./attributes.ts";
import { unsupported, fail } from "./errors.ts";
import { numberFilters } from "./number-filters.ts";
import { bind, type Implementation, type Parameters } from "./parameters.ts";
import { sequenceFilters } from "./sequence-filters.ts";
import { textFilters } from "./text-filters.ts";
import { isTrue } from "./sequences.ts";
import { str } from "./print.ts";
import { Undefined, isText, orElse, typeName, type Call, type Value } from "./values.ts";

/** Filters by name: parameters and function, or a function of all arguments. The filtered value is the first argument. */
export type Filters = Readonly<Record<string, readonly [Parameters, Implementation] | Call>>;

function orDefault(value: Value, replacement: Value = "", isBoolean: Value = false): Value {
  return value instanceof Undefined || (isTrue(isBoolean) && !isTrue(value)) ? replacement : value;
}

function attribute(value: Value, name: Value): Value {
  if (value instanceof Undefined) return value.fail();
  if (!isText(name)) return fail(`attribute name must be string, not '${typeName(name)}'`);
  return orElse(attributeOf(value, str(name)), () => new Undefined(`no attribute ${str(name)}`));
}

const table: Filters = {
  ...textFilters,
  ...numberFilters,
  ...sequenceFilters,
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

export const isFilter = (name: string): boolean => Object.hasOwn(table, name) || unsupportedFilters.has(name);

/** Throws for filters that jinja2 has and this interpreter does not. */
export function checkFilter(name: string): void {
  if (unsupportedFilters.has(name)) unsupported(`the filter ${name}`);
}

/** Returns a filter; undefined if there is none of this name. */
export function filterOf(name: string): Call | undefined {
  checkFilter(name);
  if (!Object.hasOwn(table, name)) return undefined;
  const entry = table[name]!;
  if (typeof entry === "function") return entry;
  const [parameters, run] = entry;
  return (args, keywords) => run(...(bind(name, parameters, args, keywords) as never[]));
}
