import type { InstructionKind } from "./instruction.ts";
import { countOf, literally, pattern } from "./text/pattern.ts";
import { strip, stripEnd, stripStart } from "./text/python-strings.ts";

// A line's leading white space may be lines before it, and what follows `*` the line's end: so IFEval counts.
const starBullet = pattern(String.raw`(?<=^|\n)\s*\*[^*].*`, "g");
const dashBullet = pattern(String.raw`(?<=^|\n)\s*-.*`, "g");

/** Exactly `num_bullets` lines that begin with `*` or `-`. */
export const numberOfBulletLists: InstructionKind = (kwargs) => {
  const count = kwargs.count("num_bullets");
  return (response) => countOf(starBullet, response) + countOf(dashBullet, response) === count;
};

const constrained = ["My answer is yes.", "My answer is no.", "My answer is maybe."];

/** One of the three answers, letter for letter, somewhere. */
export const constrainedResponse: InstructionKind = () => (response) =>
  constrained.some((answer) => response.includes(answer));

const highlighted = pattern(String.raw`\*[^\n*]*\*`, "g");
const doublyHighlighted = pattern(String.raw`\*\*[^\n*]*\*\*`, "g");

/** `num_highlights` or more of `*these*` and `**these**`, none blank. */
export const numberOfHighlightedSections: InstructionKind = (kwargs) => {
  const count = kwargs.count("num_highlights");
  const filled = (found: RegExp, response: string) =>
    (response.match(found) ?? []).filter((whole) => strip(strip(whole, "*")) !== "").length;
  return (response) => filled(highlighted, response) + filled(doublyHighlighted, response) >= count;
};

/** `num_sections` or more, each begun by `section_spliter` and a number: `Section 1`. */
export const multipleSections: InstructionKind = (kwargs) => {
  const beginning = pattern(String.raw`\s?${literally(kwargs.text("section_spliter").trim())}\s?\d+\s?`, "g");
  const count = kwargs.count("num_sections");
  return (response) => countOf(beginning, response) >= count;
};

const fenced = ["```json", "```Json", "```JSON", "```"];

/** JSON, with or without a fence of backticks round it; NaN and Infinity pass, as in Python. */
export const jsonFormat: InstructionKind = () => (response) => {
  let text = strip(response);
  for (const fence of fenced) if (text.startsWith(fence)) text = text.slice(fence.length);
  return isJson(strip(text.endsWith("```") ? text.slice(0, -3) : text));
};

function isJson(text: string): boolean {
  const strict = text.replace(/"(?:[^"\\]|\\.)*"|-?Infinity|NaN/gsu, (found) =>
    found.startsWith('"') ? found : "null",
  );
  try {
    JSON.parse(strict);
    return true;
  } catch {
    return false;
  }
}

const title = pattern(String.raw`<<[^\n]+>>`, "g");

/** `<<a title>>` on one line, not blank. */
export const titled: InstructionKind = () => (response) =>
  (response.match(title) ?? []).some((found) => strip(stripEnd(stripStart(found, "<"), ">")) !== "");

const placeholder = pattern(String.raw`\[.*?\]`, "g");

/** `num_placeholders` or more in square brackets, each on one line. */
export const numberOfPlaceholders: InstructionKind = (kwargs) => {
  const count = kwargs.count("num_placeholders");
  return (response) => countOf(placeholder, response) >= count;
};

const postscripts: Readonly<Record<string, RegExp>> = {
  "P.S.": pattern(String.raw`p\.\s?s\.`),
  "P.P.S": pattern(String.raw`p\.\s?p\.\s?s`),
};

/** `postscript_marker` anywhere, in any case; `P.S.` and `P.P.S` also with a space between letters. */
export const postscript: InstructionKind = (kwargs) => {
  const marker = kwargs.text("postscript_marker").trim();
  const found = postscripts[marker] ?? pattern(literally(marker.toLowerCase()));
  return (response) => found.test(response.toLowerCase());
};
