import type { InstructionKind } from "./instruction.ts";
import { detectLanguage } from "./text/language-detection.ts";
import { languageProfiles } from "./text/language-profiles.ts";
import { isLower, isUpper } from "./text/python-strings.ts";
import { treebankWords } from "./text/words.ts";

/** The whole response is in `language`, a name of langdetect. A response without letters counts as any language. */
export const responseLanguage: InstructionKind = (kwargs) => {
  const language = kwargs.text("language");
  const { languages } = languageProfiles();
  if (!languages.includes(language)) kwargs.fail("language", `one of ${languages.join(", ")}`);
  return (response) => isIn(response, language);
};

/** Whether a response is in a language; true if no language can be detected, as in IFEval. */
export function isIn(response: string, language: string): boolean {
  const detected = detectLanguage(response);
  return detected === null || detected === language;
}

/** The number of words in capitals is `capital_relation` `capital_frequency`. A hyphenated word counts once. */
export const capitalWordFrequency: InstructionKind = (kwargs) => {
  const isEnough = kwargs.bound("capital_relation", "capital_frequency");
  return (response) => isEnough(treebankWords(response).filter(isUpper).length);
};

/** The response is English, without lower-case letters. */
export const englishCapital: InstructionKind = () => (response) => isUpper(response) && isIn(response, "en");

/** The response is English, without upper-case letters. */
export const englishLowercase: InstructionKind = () => (response) =>
  isLower(response) && isIn(response, "en");
