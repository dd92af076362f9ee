import type { InstructionKind } from "./instruction.ts";
import { countOf, literallyOfAnyCase, pattern } from "./text/pattern.ts";

/** `keywords`: each somewhere in the response, also inside a word, in any case. */
export const existence: InstructionKind = (kwargs) => {
  const each = kwargs.texts("keywords").map((keyword) => pattern(literallyOfAnyCase(keyword), "i"));
  return (response) => each.every((keyword) => keyword.test(response));
};

/** `keyword`, in any case and also inside words: how often it is there is `relation` `frequency`. */
export const frequency: InstructionKind = (kwargs) => {
  const keyword = pattern(literallyOfAnyCase(kwargs.text("keyword").trim()), "gi");
  const isEnough = kwargs.bound("relation", "frequency");
  return (response) => isEnough(countOf(keyword, response));
};

/** `forbidden_words`: none of them, in any case; inside a longer word they may be. */
export const forbiddenWords: InstructionKind = (kwargs) => {
  const each = kwargs
    .texts("forbidden_words")
    .map((word) => pattern(String.raw`\b${literallyOfAnyCase(word)}\b`, "i"));
  return (response) => each.every((word) => !word.test(response));
};

/** `letter`, any one character, in lower or upper case: how often it is there is `let_relation` `let_frequency`. */
export const letterFrequency: InstructionKind = (kwargs) => {
  const letter = kwargs.text("letter").trim().toLowerCase();
  if ([...letter].length !== 1) kwargs.fail("letter", "one character");
  const isEnough = kwargs.bound("let_relation", "let_frequency");
  return (response) => isEnough([...response.toLowerCase()].filter((one) => one === letter).length);
};
