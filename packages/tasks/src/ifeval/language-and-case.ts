import type { InstructionKind } from "./instruction.ts";
import { detectLanguage } from "./text/language-detection.ts";
import { languageProfiles } from "./text/language-profiles.ts";
import { isLower, isUpper } from "./text/python-strings.ts";
import { treebankWords } from "./text/words.ts";

/**
 * `language`, as langdetect names it: the language of the whole response. One without letters counts as any language.
 */
export const responseLanguage: InstructionKind = (kwargs) => {
  const language = kwargs.text("language");
  const { languages } = languageProfiles();
  if (!languages.includes(language)) kwargs.fail("language", `one of ${languages.join(", ")}`);
  return (response) => isIn(response, language);
};

/** Also where the response has nothing to tell a language by, as in IFEval. */
export function isIn(response: string, language: string): boolean {
  const detected = detectLanguage(response);
  return detected === null || detected === language;
}

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
