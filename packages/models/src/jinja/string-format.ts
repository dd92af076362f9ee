import { fail } from "./errors.ts";
import { formatValue } from "./format-spec.ts";
import { ascii } from "./percent-format.ts";
import { repr, str } from "./print.ts";
import { orElse, type Value } from "./values.ts";
import { spend } from "./work.ts";

/** How a field such as `{0.name[key]}` reads an object. */
interface Access {
  getAttribute(value: Value, name: string): Value;
  getItem(value: Value, key: Value): Value;
}

interface Fields {
  readonly access: Access;
  readonly args: readonly Value[];
  readonly named: (name: string) => Value | undefined;
  automatic: number | null;
}

/** Python's `string.Formatter().vformat`, which the sandbox uses for `str.format`. */
export function formatString(
  format: string,
  args: readonly Value[],
  named: (name: string) => Value | undefined,
  access: Access,
): string {
  const text = expand(format, { args, named, access, automatic: 0 }, 2);
  spend(text.length);
  return text;
}

function expand(format: string, fields: Fields, depth: number): string {
  if (depth < 0) fail("Max string recursion exceeded");
  let text = "";
  for (let at = 0; at < format.length;) {
    const character = format[at]!;
    if (character !== "{" && character !== "}") {
      text += character;
      at += 1;
    } else if (format[at + 1] === character) {
      text += character;
      at += 2;
    } else if (character === "}") {
      fail("Single '}' encountered in format string");
    } else {
      const end = endOfField(format, at + 1);
      text += field(format.slice(at + 1, end), fields, depth);
      at = end + 1;
    }
  }
  return text;
}

/** Returns the index of the brace that closes a field. */
function endOfField(format: string, start: number): number {
  let nesting = 1;
  let isInBrackets = false;
  let isInSpec = false;
  for (let at = start; at < format.length; at++) {
    const character = format[at];
    if (!isInSpec && character === "[") isInBrackets = true;
    else if (character === "]") isInBrackets = false;
    if (isInBrackets) continue;
    if (character === ":" || character === "!") isInSpec = true;
    if (character === "{") nesting += 1;
    if (character === "}") nesting -= 1;
    if (nesting === 0) return at;
  }
  return fail(
    format.length === start ? "Single '{' encountered in format string" : "expected '}' before end of string",
  );
}

function field(source: string, fields: Fields, depth: number): string {
  const [, name = "", conversion, spec = ""] =
    /^((?:[^[\]!:{}]|\[[^\]]*\])*)(?:!([^]))?(?::([^]*))?$/.exec(source) ?? fail("Invalid format string");
  const value = lookUp(name, fields);
  const shown =
    conversion === undefined
      ? value
      : conversion === "s"
        ? str(value)
        : conversion === "r"
          ? repr(value)
          : conversion === "a"
            ? ascii(repr(value))
            : fail(`Unknown conversion specifier ${conversion}`);
  return formatValue(shown, expand(spec, fields, depth - 1));
}

function lookUp(name: string, fields: Fields): Value {
  const [, first = "", rest = ""] = /^([^.[]*)([^]*)$/.exec(name)!;
  let key = first;
  if (name === "") {
    if (fields.automatic === null)
      fail("cannot switch from manual field specification to automatic field numbering");
    key = String(fields.automatic);
    fields.automatic += 1;
  } else if (/^\d+$/.test(name)) {
    if (fields.automatic !== null && fields.automatic > 0)
      fail("cannot switch from manual field specification to automatic field numbering");
    fields.automatic = null;
  }
  let value: Value = /^\d+$/.test(key)
    ? orElse(fields.args[Number(key)], () => fail("Replacement index out of range for positional args tuple"))
    : orElse(fields.named(key), () => fail(repr(key)));
  let at = 0;
  for (const part of rest.matchAll(/\.([^.[]+)|\[([^\]]+)\]/g)) {
    if (part.index !== at) break;
    at += part[0].length;
    const [, attribute, item = ""] = part;
    if (attribute !== undefined) value = fields.access.getAttribute(value, attribute);
    else value = fields.access.getItem(value, /^\d+$/.test(item) ? Number(item) : item);
  }
  if (at !== rest.length) fail("Only '.' or '[' may follow ']' in format field specifier");
  return value;
}
