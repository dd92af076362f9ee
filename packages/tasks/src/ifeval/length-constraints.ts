import type { InstructionKind } from "./instruction.ts";
import { pattern } from "./text/pattern.ts";
import { strip, stripStart, words } from "./text/python-strings.ts";
import { countSentences } from "./text/sentences.ts";
import { countWords } from "./text/words.ts";

/** `relation` `num_sentences` sentences. */
export const numberOfSentences: InstructionKind = (kwargs) => {
  const isEnough = kwargs.bound("relation", "num_sentences");
  return (response) => isEnough(countSentences(response));
};

/** `relation` `num_words` words. */
export const numberOfWords: InstructionKind = (kwargs) => {
  const isEnough = kwargs.bound("relation", "num_words");
  return (response) => isEnough(countWords(response));
};

const divider = pattern(String.raw`\s?\*\*\*\s?`);

/** `num_paragraphs` between lines `***`; only the first and the last may be blank, and then do not count. */
export const numberOfParagraphs: InstructionKind = (kwargs) => {
  const count = kwargs.count("num_paragraphs");
  return (response) => {
    const paragraphs = response.split(divider);
    const isBlank = paragraphs.map((paragraph) => strip(paragraph) === "");
    if (isBlank.slice(1, -1).includes(true)) return false;
    return paragraphs.length - isBlank.filter(Boolean).length === count;
  };
};

/**
 * `num_paragraphs` between blank lines, and the `nth_paragraph` (from 1) begins with `first_word`. Blank paragraphs
 * are not counted, but move the numbers of those behind them.
 */
export const nthParagraphFirstWord: InstructionKind = (kwargs) => {
  const count = kwargs.count("num_paragraphs");
  const nth = kwargs.count("nth_paragraph");
  const wanted = kwargs.text("first_word").toLowerCase();
  if (nth > count) kwargs.fail("nth_paragraph", `at most num_paragraphs, which is ${count}`);
  return (response) => {
    const paragraphs = response.split("\n\n");
    const filled = paragraphs.filter((paragraph) => strip(paragraph) !== "").length;
    return filled === count && firstWord(paragraphs[nth - 1]!) === wanted;
  };
};

/** In lower case, without quotes before it and marks behind it; null of a blank paragraph. */
function firstWord(paragraph: string): string | null {
  const [word] = words(paragraph);
  if (word === undefined) return null;
  const bare = stripStart(stripStart(word, "'"), '"');
  // Letter by letter: a sigma at a word's end is in lower case another one than alone.
  return [.../^[^.,?!'"]*/u.exec(bare)![0]].map((letter) => letter.toLowerCase()).join("");
}
