import { fail, unsupported } from "./errors.ts";
import { asInteger, truncated } from "./numbers.ts";
import { repr, str } from "./print.ts";
import {
  Dict,
  Float,
  Range,
  Tuple,
  Undefined,
  orElse,
  typeName,
  type Keywords,
  type Value,
} from "./values.ts";

/** Python's `format % values` with the directives `%s`, `%d` and `%%`. */
export function percentFormat(format: string, values: Value): string {
  const args = values instanceof Tuple ? values.items : [values];
  let used = 0;
  const text = format.replace(/%(.?)/gsu, (directive, type: string) => {
    if (type === "%") return "%";
    if (type === "") return fail("incomplete format");
    if (type !== "s" && type !== "d") return unsupported(`% with the format ${directive}`);
    const value = orElse(args[used++], () => fail("not enough arguments for format string"));
    if (type === "s") return str(value);
    if (value instanceof Undefined) return value.fail();
    const whole = value instanceof Float ? truncated(value) : asInteger(value);
    return whole === undefined
      ? fail(`%d format: a real number is required, not ${typeName(value)}`)
      : String(whole);
  });
  const isMapping = [Dict, Array, Undefined, Range].some((type) => values instanceof type);
  if (used < args.length && !isMapping) fail("not all arguments converted during string formatting");
  return text;
}

/** Python's `str.format` with the fields `{}`, `{0}` and `{name}`. */
export function formatString(format: string, args: readonly Value[], named: Keywords): string {
  let automatic: number | null = 0;
  return format.replace(/\{\{|\}\}|\{([^{}]*)\}|[{}]/g, (part, name: string | undefined) => {
    if (part === "{{" || part === "}}") return part.charAt(0);
    if (name === undefined) return fail("unmatched brace in a format string");
    if (!/^\w*$/.test(name)) unsupported(`format() with the field {${name}}`);
    if (name !== "" && !/^\d+$/.test(name)) return str(orElse(named.get(name), () => fail(repr(name))));
    if (name === "" ? automatic === null : automatic !== null && automatic > 0)
      fail("format() mixes fields with and without numbers");
    const index = name === "" ? automatic!++ : Number(name);
    if (name !== "") automatic = null;
    return str(orElse(args[index], () => fail(`no argument ${index} for the format string`)));
  });
}
