import { unsupported, fail } from "./errors.ts";
import { floatText, asInteger, truncated } from "./numbers.ts";
import {
  Callable,
  Dict,
  DictView,
  Float,
  Markup,
  Namespace,
  Range,
  Tuple,
  Undefined,
  typeName,
  type Value,
  orElse,
  type Keywords,
} from "./values.ts";

/** Python's `str(value)`: what a template prints. */
export function str(value: Value): string {
  if (typeof value === "string") return value;
  if (value instanceof Markup) return value.text;
  return value instanceof Undefined ? "" : repr(value);
}

/** Python's `repr(value)`. */
export function repr(value: Value): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`;
  if (value instanceof Float) return floatText(value.value);
  if (value instanceof Tuple)
    return value.items.length === 1 ? `(${repr(value.items[0]!)},)` : `(${value.items.map(repr).join(", ")})`;
  if (value instanceof Dict) return dictText(value);
  if (value instanceof Undefined) return "Undefined";
  if (value instanceof Markup) return `Markup(${quoted(value.text)})`;
  if (value instanceof DictView) return `${value.type}([${[...value].map(repr).join(", ")}])`;
  if (value instanceof Namespace) return `<Namespace ${dictText(value.attributes)}>`;
  if (value instanceof Range)
    return `range(${value.start}, ${value.stop}${value.step === 1 ? "" : `, ${value.step}`})`;
  if (value instanceof Callable && value.printed !== undefined) return value.printed();
  return unsupported(`the text of a ${typeName(value)}, in which Python writes an address`);
}

function dictText(dict: Dict): string {
  return `{${[...dict.entries()].map(([key, item]) => `${repr(key)}: ${repr(item)}`).join(", ")}}`;
}

const escapes: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\" };

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const body = text.replace(/[\\'"]|(?! )[\p{C}\p{Z}]/gu, (character) => {
    if (character === "'" || character === '"') return character === quote ? `\\${character}` : character;
    return escapes[character] ?? codeEscape(character.codePointAt(0)!);
  });
  return quote + body + quote;
}

/** A character as the shortest of Python's escapes for it. */
export function codeEscape(code: number): string {
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "'": "&#39;",
  '"': "&#34;",
};

/** Escapes text for HTML as jinja2 does. */
export function escapedText(text: string): string {
  return text.replace(/[&<>'"]/g, (character) => entities[character]!);
}

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
