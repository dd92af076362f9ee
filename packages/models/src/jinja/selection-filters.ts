import { fail, unsupported } from "./errors.ts";
import { attributeGetter, identity } from "./filter-attribute.ts";
import type { Filters } from "./parameters.ts";
import { repr, str } from "./print.ts";
import { isTrue, iterate } from "./sequences.ts";
import { Iteration, Undefined, isText, type Call, type Keywords, type Value } from "./values.ts";

type LookUp = (name: string) => Call | undefined;

function* mapped(filterOf: LookUp, args: readonly Value[], keywords: Keywords): Generator<Value> {
  const [value, name, ...rest] = args;
  if (!isTrue(value!)) return;
  if (name === undefined && keywords.has("attribute")) {
    const unknown = [...keywords.keys()].find((key) => key !== "attribute" && key !== "default");
    if (unknown !== undefined) fail(`Unexpected keyword argument '${unknown}'`);
    const get = attributeGetter(keywords.get("attribute")!, identity, keywords.get("default") ?? null);
    for (const item of iterate(value!)) yield get(item);
    return;
  }
  if (name === undefined) fail("map requires a filter argument");
  for (const item of iterate(value!)) yield named(name, filterOf, "filter")([item, ...rest], keywords);
}

function named(name: Value, lookUp: LookUp, kind: string): Call {
  if (name instanceof Undefined) return name.fail();
  if (!isText(name)) return fail(`No ${kind} named ${repr(name)}.`);
  return lookUp(str(name)) ?? unsupported(`the ${kind} ${str(name)}`);
}

function selecting(testOf: LookUp, isKept: boolean, byAttribute: boolean): Call {
  function* selected(args: readonly Value[], keywords: Keywords): Generator<Value> {
    const [value, ...rest] = args;
    if (!isTrue(value!)) return;
    if (byAttribute && rest.length === 0) fail("Missing parameter for attribute name");
    const get = byAttribute ? attributeGetter(rest.shift()!) : identity;
    const [name, ...testArgs] = rest;
    for (const item of iterate(value!)) {
      const tested = get(item);
      const passes =
        name === undefined ? tested : named(name, testOf, "test")([tested, ...testArgs], keywords);
      if (isTrue(passes) === isKept) yield item;
    }
  }
  return (args, keywords) => new Iteration(selected(args, keywords));
}

/** The filters that apply another filter or a test to each item. */
export function selectionFilters(filterOf: LookUp, testOf: LookUp): Filters {
  return {
    map: (args, keywords) => new Iteration(mapped(filterOf, args, keywords)),
    reject: selecting(testOf, false, false),
    rejectattr: selecting(testOf, false, true),
    select: selecting(testOf, true, false),
    selectattr: selecting(testOf, true, true),
  };
}
