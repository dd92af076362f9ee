import type { InstructionKind } from "./instruction.ts";
import { detectLanguage } from "./text/language-detection.ts";
import { languageProfiles } from "./text/language-profiles.ts";

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
