import type { Filters } from "./parameters.ts";
import { fail, unsupported } from "./errors.ts";
import { dumpJson } from "./json.ts";
import { asInteger, toIndex } from "./numbers.ts";
import { percentFormat } from "./percent-format.ts";
import { escapedText, str } from "./print.ts";
import { isTrue, len } from "./sequences.ts";
import { center, replace, text } from "./string-methods.ts";
import { capitalize, characters, spaces, splitLines, strip } from "./text.ts";
import { Dict, Markup, Tuple, isText, itemsOf, type Keywords, type Value } from "./values.ts";
import { repeated, spend } from "./work.ts";

/** Applies a string method to the text of any value; text marked as safe stays marked. */
const soft =
  (method: (text: string) => string) =>
  (value: Value): Value =>
    value instanceof Markup ? new Markup(method(value.text)) : method(str(value));

const forceEscape = (value: Value) => new Markup(escapedText(str(value)));
const escape = (value: Value) => (value instanceof Markup ? value : forceEscape(value));

function indent(value: Value, width: Value = 4, first: Value = false, blank: Value = false): string {
  if (value instanceof Markup) unsupported("indent of text marked as safe");
  const lines = splitLines(`${text(value)}\n`);
  const indention = isText(width) ? str(width) : repeated(" ", toIndex(width));
  spend(lines.length * indention.length);
  const rest = lines.slice(1).map((line) => (isTrue(blank) || line !== "" ? indention : "") + line);
  return (isTrue(first) ? indention : "") + [lines[0], ...rest].join("\n");
}

function truncate(
  value: Value,
  length: Value = 255,
  killWords: Value = false,
  end: Value = "...",
  leeway: Value = null,
): Value {
  const limit = toIndex(length);
  const ending = text(end);
  const slack = leeway === null ? 5 : toIndex(leeway);
  if (limit < len(ending) || slack < 0) fail(`expected length >= ${len(ending)}, got ${limit}`);
  if (len(value) <= limit + slack) return value;
  const start = characters(text(value))
    .slice(0, limit - len(ending))
    .join("");
  const at = start.lastIndexOf(" ");
  return (isTrue(killWords) || at < 0 ? start : start.slice(0, at)) + ending;
}

const wordStart = new RegExp(`([-${spaces}({\\[<]+)`, "u");

function title(value: Value): string {
  return str(value)
    .split(wordStart)
    .map((part) => {
      const first = characters(part)[0] ?? "";
      return first.toUpperCase() + part.slice(first.length).toLowerCase();
    })
    .join("");
}

function format(args: readonly Value[], keywords: Keywords): string {
  const [value, ...rest] = args;
  if (value instanceof Markup) unsupported("format of text marked as safe");
  if (rest.length > 0 && keywords.size > 0)
    fail("can't handle positional and keyword arguments at the same time");
  return percentFormat(str(value!), keywords.size > 0 ? new Dict(keywords) : new Tuple(rest));
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
    indent: indention === null ? null : width === undefined ? text(indention) : repeated(" ", Number(width)),
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
  center: [
    "value width?",
    (value: Value, width: Value = 80) => soft((text) => center(text, toIndex(width)))(value),
  ],
  e: ["s", escape],
  escape: ["s", escape],
  forceescape: ["value", forceEscape],
  format,
  indent: ["s width? first? blank?", indent],
  lower: ["s", soft((text) => text.toLowerCase())],
  replace: ["s old new count?", replaceText],
  safe: ["value", (value: Value) => new Markup(str(value))],
  string: ["s", (value: Value) => (value instanceof Markup ? value : str(value))],
  title: ["s", title],
  tojson: ["x ensure_ascii? indent? separators? sort_keys?", toJson],
  trim: ["value chars?", trim],
  truncate: ["s length? killwords? end? leeway?", truncate],
  upper: ["s", soft((text) => text.toUpperCase())],
  wordcount: ["s", (value: Value) => str(value).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0],
};
