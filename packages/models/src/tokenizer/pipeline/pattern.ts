import { errorMessage } from "@periodic-eval/contracts/options";
import { Unsupported } from "./oniguruma-class.ts";
import { translateOniguruma } from "./oniguruma.ts";
import type { Part } from "./part.ts";

/** A half-open range of UTF-16 units of a text, and whether it matches a pattern. */
export type Match = readonly [start: number, end: number, isMatch: boolean];

/** Reads `pattern`: `{ "String": … }` or `{ "Regex": … }`. The result has the flags `g` and `v`. */
export function readPattern(part: Part): RegExp {
  const pattern = part.part("pattern");
  if ("String" in pattern.fields) {
    const characters = [...pattern.string("String")];
    return new RegExp(characters.map((c) => `\\u{${c.codePointAt(0)!.toString(16)}}`).join(""), "gv");
  }
  const source = pattern.string("Regex");
  try {
    return translateOniguruma(source);
  } catch (cause) {
    if (!(cause instanceof Unsupported || cause instanceof SyntaxError)) throw cause;
    throw pattern.error(
      "Regex",
      `${JSON.stringify(source)}: ${errorMessage(cause)} is wrong, or not supported`,
      "a regular expression of Oniguruma that can be translated into one of JavaScript",
      "Rewrite the expression without it, with the same matches.",
    );
  }
}

/** Returns ranges that cover the text. An empty match directly after another match does not count, as in tokenizers. */
export function findMatches(regex: RegExp, text: string): Match[] {
  const matches: Match[] = [];
  if (text === "") return matches;
  let lastEnd = 0;
  let isAfterMatch = false;
  regex.lastIndex = 0;
  for (let match = regex.exec(text); match !== null; match = regex.exec(text)) {
    const start = match.index;
    const end = start + match[0].length;
    if (end === start) {
      // V8 finds empty matches of lookarounds in the middle of surrogate pairs.
      if (start > 0 && text.codePointAt(start - 1)! > 0xffff) {
        regex.lastIndex = start + 1;
        continue;
      }
      regex.lastIndex += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1;
      if (isAfterMatch && lastEnd === end) continue;
    }
    if (lastEnd !== start) matches.push([lastEnd, start, false]);
    matches.push([start, end, true]);
    lastEnd = end;
    isAfterMatch = true;
  }
  if (lastEnd !== text.length) matches.push([lastEnd, text.length, false]);
  return matches;
}
