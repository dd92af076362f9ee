import type { InstructionKind } from "./instruction.ts";
import { isIn } from "./language.ts";
import { isLower, isUpper } from "./text/python-strings.ts";
import { treebankWords } from "./text/words.ts";

/** Words in capitals, hyphenated ones whole: their number is `capital_relation` `capital_frequency`. */
export const capitalWordFrequency: InstructionKind = (kwargs) => {
  const isEnough = kwargs.bound("capital_relation", "capital_frequency");
  return (response) => isEnough(treebankWords(response).filter(isUpper).length);
};

/** English, and no letter in lower case. */
export const englishCapital: InstructionKind = () => (response) => isUpper(response) && isIn(response, "en");

/** English, and no letter in upper case. */
export const englishLowercase: InstructionKind = () => (response) =>
  isLower(response) && isIn(response, "en");
