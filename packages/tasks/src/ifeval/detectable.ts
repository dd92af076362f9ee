import type { InstructionKind } from "./instruction.ts";
import { countOf, literally, pattern } from "./text/pattern.ts";
import { strip, stripEnd, stripStart } from "./text/python-strings.ts";

// As in IFEval, the character after `*` may be the line's end. IFEval's `\s*` also spans preceding lines, which changes no count.
const starBullet = pattern(String.raw`(?<=^|\n)(?:(?!\n)\s)*\*[^*].*`, "g");
const dashBullet = pattern(String.raw`(?<=^|\n)(?:(?!\n)\s)*-.*`, "g");

/** The response has exactly `num_bullets` lines that begin with `*` or `-`. */
export const numberOfBulletLists: InstructionKind = (kwargs) => {
  const count = kwargs.count("num_bullets");
  return (response) => countOf(starBullet, response) + countOf(dashBullet, response) === count;
};

const constrained = ["My answer is yes.", "My answer is no.", "My answer is maybe."];

/** The response contains one of the three answers, verbatim. */
export const constrainedResponse: InstructionKind = () => (response) =>
  constrained.some((answer) => response.includes(answer));

const highlighted = pattern(String.raw`\*[^\n*]*\*`, "g");
const doublyHighlighted = pattern(String.raw`\*\*[^\n*]*\*\*`, "g");

/** The response has at least `num_highlights` parts in `*…*` or `**…**` that are not blank. */
export const numberOfHighlightedSections: InstructionKind = (kwargs) => {
  const count = kwargs.count("num_highlights");
  const filled = (found: RegExp, response: string) =>
    (response.match(found) ?? []).filter((whole) => strip(strip(whole, "*")) !== "").length;
  return (response) => filled(highlighted, response) + filled(doublyHighlighted, response) >= count;
};

/** The response has at least `num_sections` sections, each introduced by `section_spliter` and a number: `Section 1`. */
export const multipleSections: InstructionKind = (kwargs) => {
  const beginning = pattern(String.raw`\s?${literally(kwargs.text("section_spliter").trim())}\s?\d+\s?`, "g");
  const count = kwargs.count("num_sections");
  return (response) => countOf(beginning, response) >= count;
};

const fenced = ["```json", "```Json", "```JSON", "```"];

/** The response is JSON, with or without a Markdown fence; NaN and Infinity are accepted, as in Python. */
export const jsonFormat: InstructionKind = () => (response) => {
  let text = strip(response);
  for (const fence of fenced) if (text.startsWith(fence)) text = text.slice(fence.length);
  return isJson(strip(text.endsWith("```") ? text.slice(0, -3) : text));
};

function isJson(text: string): boolean {
  const strict = text.replace(/"(?:[^"\\]|\\.)*(?:"|$)|-?Infinity|NaN/gsu, (found) =>
    found.startsWith('"') ? found : "null",
  );
  try {
    JSON.parse(strict);
    return true;
  } catch {
    return false;
  }
}

/** The response has a title that is not blank in `<<…>>`, on one line. */
export const titled: InstructionKind = () => (response) =>
  response.split("\n").some((line) => {
    const [start, end] = [line.indexOf("<<"), line.lastIndexOf(">>")];
    const found = line.slice(start, end);
    return start >= 0 && end > start + 2 && strip(stripEnd(stripStart(found, "<"), ">")) !== "";
  });

/** Counts the parts of one line from a bracket to the first closing one after it. */
const countPlaceholders = (line: string): number =>
  line
    .split("]")
    .slice(0, -1)
    .filter((part) => part.includes("[")).length;

/** The response has at least `num_placeholders` placeholders in square brackets, each on one line. */
export const numberOfPlaceholders: InstructionKind = (kwargs) => {
  const count = kwargs.count("num_placeholders");
  return (response) => response.split("\n").reduce((sum, line) => sum + countPlaceholders(line), 0) >= count;
};

const postscripts: Readonly<Record<string, RegExp>> = {
  "P.S.": pattern(String.raw`p\.\s?s\.`),
  "P.P.S": pattern(String.raw`p\.\s?p\.\s?s`),
};

/** The response contains `postscript_marker`, case-insensitively; `P.S.` and `P.P.S` may have a space between letters. */
export const postscript: InstructionKind = (kwargs) => {
  const marker = kwargs.text("postscript_marker").trim();
  const found = postscripts[marker] ?? pattern(literally(marker.toLowerCase()));
  return (response) => found.test(response.toLowerCase());
};
