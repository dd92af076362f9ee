import { sorted } from "./compare.ts";
import { fail } from "./errors.ts";
import { asInteger, floatText } from "./numbers.ts";
import { str } from "./print.ts";
import { Dict, Float, isText, itemsOf, typeName, type Value } from "./values.ts";

interface Style {
  readonly isAscii: boolean;
  /** Null: everything in a single line. */
  readonly indent: string | null;
  readonly separators: readonly [item: string, key: string];
  readonly sortsKeys: boolean;
}

/** Python's `json.dumps`. */
export function dumpJson(value: Value, style: Style, depth = 0): string {
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
