import * as detectable from "./detectable.ts";
import type { InstructionKind } from "./instruction.ts";
import * as keywords from "./keywords.ts";
import * as languageAndCase from "./language-and-case.ts";
import * as lengthConstraints from "./length-constraints.ts";
import { strip } from "./text/python-strings.ts";

/** The response has no comma. Commas of other scripts do not count. */
const noComma: InstructionKind = () => (response) => !response.includes(",");

/** The response has two different answers, separated by `******`; a blank part may come before or after them. */
const twoResponses: InstructionKind = () => (response) => {
  const parts = response.split("******").map((part) => strip(part));
  if (parts.slice(1, -1).includes("")) return false;
  const filled = parts.filter((part) => part !== "");
  return filled.length === 2 && filled[0] !== filled[1];
};

/** The response begins with `prompt_to_repeat`, case-insensitively. */
const repeatPrompt: InstructionKind = (kwargs) => {
  const prompt = strip(kwargs.text("prompt_to_repeat")).toLowerCase();
  return (response) => strip(response).toLowerCase().startsWith(prompt);
};

/** The response ends with `end_phrase`, case-insensitively; a double quotation mark may follow. */
const endChecker: InstructionKind = (kwargs) => {
  const phrase = strip(kwargs.text("end_phrase")).toLowerCase();
  return (response) => strip(strip(response), '"').toLowerCase().endsWith(phrase);
};

/** The response is wrapped in straight double quotation marks. */
const quotation: InstructionKind = () => (response) => {
  const text = strip(response);
  return text.length > 1 && text.startsWith('"') && text.endsWith('"');
};

/** The 25 kinds of instructions of IFEval (arXiv:2311.07911), by the ids of its data. */
export const instructionKinds: ReadonlyMap<string, InstructionKind> = new Map([
  ["keywords:existence", keywords.existence],
  ["keywords:frequency", keywords.frequency],
  ["keywords:forbidden_words", keywords.forbiddenWords],
  ["keywords:letter_frequency", keywords.letterFrequency],
  ["language:response_language", languageAndCase.responseLanguage],
  ["length_constraints:number_sentences", lengthConstraints.numberOfSentences],
  ["length_constraints:number_paragraphs", lengthConstraints.numberOfParagraphs],
  ["length_constraints:number_words", lengthConstraints.numberOfWords],
  ["length_constraints:nth_paragraph_first_word", lengthConstraints.nthParagraphFirstWord],
  ["detectable_content:number_placeholders", detectable.numberOfPlaceholders],
  ["detectable_content:postscript", detectable.postscript],
  ["detectable_format:number_bullet_lists", detectable.numberOfBulletLists],
  ["detectable_format:constrained_response", detectable.constrainedResponse],
  ["detectable_format:number_highlighted_sections", detectable.numberOfHighlightedSections],
  ["detectable_format:multiple_sections", detectable.multipleSections],
  ["detectable_format:json_format", detectable.jsonFormat],
  ["detectable_format:title", detectable.titled],
  ["combination:two_responses", twoResponses],
  ["combination:repeat_prompt", repeatPrompt],
  ["startend:end_checker", endChecker],
  ["startend:quotation", quotation],
  ["change_case:capital_word_frequency", languageAndCase.capitalWordFrequency],
  ["change_case:english_capital", languageAndCase.englishCapital],
  ["change_case:english_lowercase", languageAndCase.englishLowercase],
  ["punctuation:no_comma", noComma],
]);
