import type { InstructionKind } from "./instruction.ts";
import { pattern } from "./text/pattern.ts";
import { strip, stripStart, words } from "./text/python-strings.ts";
import { countSentences } from "./text/sentences.ts";
import { countWords } from "./text/words.ts";

/** The number of sentences is `relation` `num_sentences`. */
export const numberOfSentences: InstructionKind = (kwargs) => {
  const isEnough = kwargs.bound("relation", "num_sentences");
  return (response) => isEnough(countSentences(response));
};

/** The number of words is `relation` `num_words`. */
export const numberOfWords: InstructionKind = (kwargs) => {
  const isEnough = kwargs.bound("relation", "num_words");
  return (response) => isEnough(countWords(response));
};

const divider = pattern(String.raw`\s?\*\*\*\s?`);

/** The response has `num_paragraphs` paragraphs separated by `***`. Only the first and the last may be blank; they then do not count. */
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
 * The response has `num_paragraphs` paragraphs separated by blank lines, and the `nth_paragraph` (from 1) begins with
 * `first_word`. Blank paragraphs do not count, but shift the numbers of later paragraphs.
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

/** Returns the first word in lower case, without leading quotes and trailing punctuation; null for a blank paragraph. */
function firstWord(paragraph: string): string | null {
  const [word] = words(paragraph);
  if (word === undefined) return null;
  const bare = stripStart(stripStart(word, "'"), '"');
  // Letter by letter, because a sigma at the end of a word has another lower case than alone.
  return [.../^[^.,?!'"]*/u.exec(bare)![0]].map((letter) => letter.toLowerCase()).join("");
}
