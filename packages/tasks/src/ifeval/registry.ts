import * as changeCase from "./change-case.ts";
import * as combination from "./combination.ts";
import * as detectableContent from "./detectable-content.ts";
import * as detectableFormat from "./detectable-format.ts";
import type { InstructionKind } from "./instruction.ts";
import * as keywords from "./keywords.ts";
import { responseLanguage } from "./language.ts";
import * as lengthConstraints from "./length-constraints.ts";
import { noComma } from "./punctuation.ts";
import * as startend from "./startend.ts";

/** The 25 kinds of instruction of IFEval (arXiv:2311.07911), by the ids of its data. */
export const instructionKinds: ReadonlyMap<string, InstructionKind> = new Map([
  ["keywords:existence", keywords.existence],
  ["keywords:frequency", keywords.frequency],
  ["keywords:forbidden_words", keywords.forbiddenWords],
  ["keywords:letter_frequency", keywords.letterFrequency],
  ["language:response_language", responseLanguage],
  ["length_constraints:number_sentences", lengthConstraints.numberOfSentences],
  ["length_constraints:number_paragraphs", lengthConstraints.numberOfParagraphs],
  ["length_constraints:number_words", lengthConstraints.numberOfWords],
  ["length_constraints:nth_paragraph_first_word", lengthConstraints.nthParagraphFirstWord],
  ["detectable_content:number_placeholders", detectableContent.numberOfPlaceholders],
  ["detectable_content:postscript", detectableContent.postscript],
  ["detectable_format:number_bullet_lists", detectableFormat.numberOfBulletLists],
  ["detectable_format:constrained_response", detectableFormat.constrainedResponse],
  ["detectable_format:number_highlighted_sections", detectableFormat.numberOfHighlightedSections],
  ["detectable_format:multiple_sections", detectableFormat.multipleSections],
  ["detectable_format:json_format", detectableFormat.jsonFormat],
  ["detectable_format:title", detectableFormat.titled],
  ["combination:two_responses", combination.twoResponses],
  ["combination:repeat_prompt", combination.repeatPrompt],
  ["startend:end_checker", startend.endChecker],
  ["startend:quotation", startend.quotation],
  ["change_case:capital_word_frequency", changeCase.capitalWordFrequency],
  ["change_case:english_capital", changeCase.englishCapital],
  ["change_case:english_lowercase", changeCase.englishLowercase],
  ["punctuation:no_comma", noComma],
]);
