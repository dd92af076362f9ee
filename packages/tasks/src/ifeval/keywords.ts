import type { InstructionKind } from "./instruction.ts";
import { countOf, literallyOfAnyCase, pattern } from "./text/pattern.ts";

/** The response contains each of `keywords`, case-insensitively, also inside words. */
export const existence: InstructionKind = (kwargs) => {
  const each = kwargs.texts("keywords").map((keyword) => pattern(literallyOfAnyCase(keyword), "i"));
  return (response) => each.every((keyword) => keyword.test(response));
};

/** The number of occurrences of `keyword` (case-insensitive, also inside words) is `relation` `frequency`. */
export const frequency: InstructionKind = (kwargs) => {
  const keyword = pattern(literallyOfAnyCase(kwargs.text("keyword").trim()), "gi");
  const isEnough = kwargs.bound("relation", "frequency");
  return (response) => isEnough(countOf(keyword, response));
};

/** The response contains none of `forbidden_words`, case-insensitively, as whole words. */
export const forbiddenWords: InstructionKind = (kwargs) => {
  const each = kwargs
    .texts("forbidden_words")
    .map((word) => pattern(String.raw`\b${literallyOfAnyCase(word)}\b`, "i"));
  return (response) => each.every((word) => !word.test(response));
};

/** The number of occurrences of the character `letter`, case-insensitively, is `let_relation` `let_frequency`. */
export const letterFrequency: InstructionKind = (kwargs) => {
  const letter = kwargs.text("letter").trim().toLowerCase();
  if ([...letter].length !== 1) kwargs.fail("letter", "one character");
  const isEnough = kwargs.bound("let_relation", "let_frequency");
  return (response) => isEnough([...response.toLowerCase()].filter((one) => one === letter).length);
};
