import { sorted } from "./compare.ts";
import { fail, unsupported } from "./errors.ts";
import { asInteger, toIndex, floatText } from "./numbers.ts";
import type { Filters } from "./parameters.ts";
import { str, percentFormat } from "./print.ts";
import { isTrue } from "./sequences.ts";
import { replace, text } from "./string-methods.ts";
import { capitalize, splitLines, strip } from "./text.ts";
import {
  Markup,
  Tuple,
  isText,
  itemsOf,
  type Keywords,
  type Value,
  Dict,
  Float,
  typeName,
} from "./values.ts";

/** Applies a string method to the text of any value; text marked as safe stays marked. */
const soft =
  (method: (text: string) => string) =>
  (value: Value): Value =>
    value instanceof Markup ? new Markup(method(value.text)) : method(str(value));

function indent(value: Value, width: Value = 4, first: Value = false, blank: Value = false): string {
  if (value instanceof Markup) unsupported("indent of text marked as safe");
  const lines = splitLines(`${text(value)}\n`);
  const indention = isText(width) ? str(width) : " ".repeat(Math.max(0, toIndex(width)));
  const rest = lines.slice(1).map((line) => (isTrue(blank) || line !== "" ? indention : "") + line);
  return (isTrue(first) ? indention : "") + [lines[0], ...rest].join("\n");
}

function format(args: readonly Value[], keywords: Keywords): string {
  const [value, ...rest] = args;
  if (value instanceof Markup) unsupported("format of text marked as safe");
  if (keywords.size > 0) unsupported("format with keyword arguments");
  return percentFormat(str(value!), new Tuple(rest));
}

function toJson(
  value: Value,
  ensureAscii: Value = false,
  indention: Value = null,
  separators: Value = null,
  sortKeys: Value = false,
): string {
  const width = asInteger(indention);
  const parts = separators === null ? undefined : itemsOf(separators);
  if (separators !== null && parts?.length !== 2) fail("separators must be a pair of strings");
  return dumpJson(value, {
    isAscii: isTrue(ensureAscii),
    indent:
      indention === null
        ? null
        : width === undefined
          ? text(indention)
          : " ".repeat(Math.max(0, Number(width))),
    separators: parts ? [text(parts[0]!), text(parts[1]!)] : [indention === null ? ", " : ",", ": "],
    sortsKeys: isTrue(sortKeys),
  });
}

function replaceText(value: Value, old: Value, replacement: Value, count: Value = null): string {
  return replace(str(value), str(old), str(replacement), count === null ? -1 : toIndex(count));
}

function trim(value: Value, chars: Value = null): Value {
  if (value instanceof Markup && chars !== null) unsupported("trim of text marked as safe");
  return soft((self) => strip(self, chars === null ? null : text(chars), "both"))(value);
}

export const textFilters: Filters = {
  capitalize: ["s", soft(capitalize)],
  format,
  indent: ["s width? first? blank?", indent],
  lower: ["s", soft((text) => text.toLowerCase())],
  replace: ["s old new count?", replaceText],
  safe: ["value", (value: Value) => new Markup(str(value))],
  string: ["s", (value: Value) => (value instanceof Markup ? value : str(value))],
  tojson: ["x ensure_ascii? indent? separators? sort_keys?", toJson],
  trim: ["value chars?", trim],
  upper: ["s", soft((text) => text.toUpperCase())],
};

interface Style {
  readonly isAscii: boolean;
  /** Null: everything in a single line. */
  readonly indent: string | null;
  readonly separators: readonly [item: string, key: string];
  readonly sortsKeys: boolean;
}

/** Python's `json.dumps`. */
function dumpJson(value: Value, style: Style, depth = 0): string {
  if (value === null) return "null";
  if (typeof value === "boolean") return value ? "true" : "false";
  if (isText(value)) return quoted(str(value), style.isAscii);
  if (value instanceof Float) return floatJson(value.value);
  const whole = asInteger(value);
  if (whole !== undefined) return String(whole);
  const items = itemsOf(value);
  if (items !== undefined)
    return wrapped(
      "[",
      items.map((item) => dumpJson(item, style, depth + 1)),
      "]",
      style,
      depth,
    );
  if (!(value instanceof Dict)) return fail(`Object of type ${typeName(value)} is not JSON serializable`);
  const entries = [...value.entries()];
  const ordered = style.sortsKeys ? sorted(entries, ([key]) => key, false) : entries;
  const members = ordered.map(
    ([key, item]) =>
      quoted(keyText(key), style.isAscii) + style.separators[1] + dumpJson(item, style, depth + 1),
  );
  return wrapped("{", members, "}", style, depth);
}

function wrapped(open: string, parts: readonly string[], close: string, style: Style, depth: number): string {
  const { indent, separators } = style;
  if (parts.length === 0) return open + close;
  if (indent === null) return open + parts.join(separators[0]) + close;
  const line = `\n${indent.repeat(depth + 1)}`;
  return open + line + parts.join(separators[0] + line) + `\n${indent.repeat(depth)}` + close;
}

function floatJson(value: number): string {
  if (Number.isFinite(value)) return floatText(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

function keyText(key: Value): string {
  if (isText(key)) return str(key);
  if (key === null || typeof key === "boolean") return String(key);
  if (key instanceof Float) return floatJson(key.value);
  const whole = asInteger(key);
  return whole === undefined
    ? fail(`keys must be str, int, float, bool or None, not ${typeName(key)}`)
    : String(whole);
}

const escapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\b": "\\b",
  "\f": "\\f",
};

function quoted(text: string, isAscii: boolean): string {
  // oxlint-disable-next-line no-control-regex -- JSON escapes them
  const special = isAscii ? /["\\]|[^ -~]/g : /["\\\x00-\x1f]/g;
  const body = text.replace(
    special,
    (character) => escapes[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `"${body}"`;
}
