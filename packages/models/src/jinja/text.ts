import { unsupported } from "./errors.ts";

/** Python's whitespace for `str.strip()`, `str.split()` and `\s`, as the inside of a character class. */
export const spaces = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const surrogate = /[\ud800-\udfff]/;
const space = new RegExp(`^[${spaces}]$`);

export const isSpace = (character: string): boolean => space.test(character);

/** The characters of a text as Python counts them: code points. */
export function characters(text: string): readonly string[] {
  return surrogate.test(text) ? Array.from(text) : text.split("");
}

export function lengthOf(text: string): number {
  return surrogate.test(text) ? Array.from(text).length : text.length;
}

/** Compares by code points; JavaScript's `<` compares UTF-16 units. */
export function compareText(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    const isHighX = x >= 0xd800 && x <= 0xdfff;
    const isHighY = y >= 0xd800 && y <= 0xdfff;
    return isHighX === isHighY ? x - y : isHighX ? 1 : -1;
  }
  return a.length - b.length;
}

/** Python's `str.strip`, `lstrip` and `rstrip`. */
export function strip(text: string, chars: string | null, sides: "both" | "left" | "right"): string {
  const set = chars === null ? null : new Set(characters(chars));
  const isStripped = (character: string) => (set === null ? isSpace(character) : set.has(character));
  const all = characters(text);
  let start = 0;
  let end = all.length;
  if (sides !== "right") while (start < end && isStripped(all[start]!)) start += 1;
  if (sides !== "left") while (end > start && isStripped(all[end - 1]!)) end -= 1;
  return all.slice(start, end).join("");
}

const lineEnd = "(?:\\r\\n|[\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029])";
const lineOf = new RegExp(`(?:(?!${lineEnd})[^])*(?:${lineEnd}|$)`, "g");
const endOfLine = new RegExp(`${lineEnd}$`);

/** Python's `str.splitlines`. */
export function splitLines(text: string, keepEnds = false): string[] {
  const lines = text.match(lineOf)!;
  // The last match is the empty string at the end.
  lines.pop();
  return keepEnds ? lines : lines.map((line) => line.replace(endOfLine, ""));
}

/** Returns the uppercase of a character whose titlecase in Python is the same. */
function titleCase(character: string): string {
  const upper = character.toUpperCase();
  if (lengthOf(upper) > 1 || /[\p{Lt}\u01c4-\u01cc\u01f1-\u01f3\u10d0-\u10ff]/u.test(character))
    unsupported(`the titlecase of ${character}`);
  return upper;
}

/** Python's `str.capitalize`. */
export function capitalize(text: string): string {
  const first = characters(text)[0] ?? "";
  return titleCase(first) + text.toLowerCase().slice(first.toLowerCase().length);
}

/** Python's `str.title`: each cased character after one that is not cased begins a word. */
export function title(text: string): string {
  let result = "";
  let isInWord = false;
  const lower = text.toLowerCase();
  let at = 0;
  for (const character of characters(text)) {
    const length = character.toLowerCase().length;
    result += isInWord ? lower.slice(at, at + length) : titleCase(character);
    at += length;
    isInWord = /[\p{Lowercase}\p{Uppercase}\p{Lt}]/u.test(character);
  }
  return result;
}
