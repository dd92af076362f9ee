import type { InstructionKind } from "./instruction.ts";
import { countOf, literally, pattern } from "./text/pattern.ts";

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
