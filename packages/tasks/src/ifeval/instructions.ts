import {
  dataError,
  filledText,
  filledTexts,
  isRecord,
  parseRow,
  positiveInteger,
  quoteValue,
} from "@periodic-eval/contracts/options";
import * as z from "zod";
import { detectLanguage, languageProfiles } from "./text/language-detection.ts";
import {
  countOf,
  literally,
  literallyOfAnyCase,
  pattern,
  isLower,
  isUpper,
  strip,
  stripEnd,
  stripStart,
  words,
} from "./text/pattern.ts";
import { countSentences } from "./text/sentences.ts";
import { countWords, treebankWords } from "./text/words.ts";

/** Returns whether a response that is not blank follows the instruction. */
export type Check = (response: string) => boolean;

/**
 * Checks an instruction's kwargs, and returns the check of responses.
 *
 * @param where File, line, document and instruction, for errors.
 * @throws PeriodicEvalError `data` for wrong kwargs.
 */
type InstructionKind = (value: unknown, where: string) => Check;

const kind =
  <S extends z.ZodObject>(kwargs: S, open: (kwargs: z.output<S>) => Check): InstructionKind =>
  (value, where) => {
    if (isRecord(value)) return open(parseRow(where, kwargs, value, "Correct the kwargs."));
    const fix = "Write kwargs for every instruction, {} if it has none.";
    throw dataError(where, quoteValue(value), "an object of kwargs", fix);
  };

const text = filledText();
const texts = filledTexts();
const count = positiveInteger;
const relation = z.enum(["at least", "less than"], '"at least" or "less than"');
const nothing = z.strictObject({});

/** Returns a function that checks a number against a limit. */
const within =
  (how: z.infer<typeof relation>, limit: number) =>
  (actual: number): boolean =>
    how === "less than" ? actual < limit : actual >= limit;

const letter = text
  .transform((value) => value.trim().toLowerCase())
  .refine((value) => [...value].length === 1, "one character");
const language = z.custom<string>((name) => languageProfiles().languages.includes(name as string), {
  error: () => `one of ${languageProfiles().languages.join(", ")}`,
});

/** Whether a response is in a language; true if no language can be detected, as in IFEval. */
function isIn(response: string, name: string): boolean {
  const detected = detectLanguage(response);
  return detected === null || detected === name;
}

/** Returns the first word in lower case, without leading quotes and trailing punctuation; null for a blank paragraph. */
function firstWord(paragraph: string): string | null {
  const [word] = words(paragraph);
  if (word === undefined) return null;
  const bare = stripStart(stripStart(word, "'"), '"');
  // Letter by letter, because a sigma at the end of a word has another lower case than alone.
  return [.../^[^.,?!'"]*/u.exec(bare)![0]].map((character) => character.toLowerCase()).join("");
}

const divider = pattern(String.raw`\s?\*\*\*\s?`);

// As in IFEval, the character after `*` may be the line's end. IFEval's `\s*` also spans preceding lines, which changes no count.
const starBullet = pattern(String.raw`(?<=^|\n)(?:(?!\n)\s)*\*[^*].*`, "g");
const dashBullet = pattern(String.raw`(?<=^|\n)(?:(?!\n)\s)*-.*`, "g");

const constrained = ["My answer is yes.", "My answer is no.", "My answer is maybe."];

const highlighted = pattern(String.raw`\*[^\n*]*\*`, "g");
const doublyHighlighted = pattern(String.raw`\*\*[^\n*]*\*\*`, "g");

const fenced = ["```json", "```Json", "```JSON", "```"];

function isJson(json: string): boolean {
  const strict = json.replace(/"(?:[^"\\]|\\.)*(?:"|$)|-?Infinity|NaN/gsu, (match) =>
    match.startsWith('"') ? match : "null",
  );
  try {
    JSON.parse(strict);
    return true;
  } catch {
    return false;
  }
}

/** Counts the parts of one line from a bracket to the first closing one after it. */
const countPlaceholders = (line: string): number =>
  line
    .split("]")
    .slice(0, -1)
    .filter((part) => part.includes("[")).length;

const postscripts: Readonly<Record<string, RegExp>> = {
  "P.S.": pattern(String.raw`p\.\s?s\.`),
  "P.P.S": pattern(String.raw`p\.\s?p\.\s?s`),
};

/** The 25 kinds of instructions of IFEval (arXiv:2311.07911), by the ids of its data. */
export const instructionKinds: Readonly<Record<string, InstructionKind>> = {
  /** The response contains each of `keywords`, case-insensitively, also inside words. */
  "keywords:existence": kind(z.strictObject({ keywords: texts }), ({ keywords }) => {
    const each = keywords.map((keyword) => pattern(literallyOfAnyCase(keyword), "i"));
    return (response) => each.every((keyword) => keyword.test(response));
  }),
  /** The number of occurrences of `keyword` (case-insensitive, also inside words) is `relation` `frequency`. */
  "keywords:frequency": kind(z.strictObject({ keyword: text, relation, frequency: count }), (kwargs) => {
    const keyword = pattern(literallyOfAnyCase(kwargs.keyword.trim()), "gi");
    const isEnough = within(kwargs.relation, kwargs.frequency);
    return (response) => isEnough(countOf(keyword, response));
  }),
  /** The response contains none of `forbidden_words`, case-insensitively, as whole words. */
  "keywords:forbidden_words": kind(z.strictObject({ forbidden_words: texts }), (kwargs) => {
    const each = kwargs.forbidden_words.map((word) =>
      pattern(String.raw`\b${literallyOfAnyCase(word)}\b`, "i"),
    );
    return (response) => each.every((word) => !word.test(response));
  }),
  /** The number of occurrences of the character `letter`, case-insensitively, is `let_relation` `let_frequency`. */
  "keywords:letter_frequency": kind(
    z.strictObject({ letter, let_relation: relation, let_frequency: count }),
    (kwargs) => {
      const isEnough = within(kwargs.let_relation, kwargs.let_frequency);
      return (response) =>
        isEnough([...response.toLowerCase()].filter((character) => character === kwargs.letter).length);
    },
  ),
  /** The whole response is in `language`, a name of langdetect. A response without letters counts as any language. */
  "language:response_language": kind(
    z.strictObject({ language }),
    (kwargs) => (response) => isIn(response, kwargs.language),
  ),
  "length_constraints:number_sentences": kind(
    z.strictObject({ relation, num_sentences: count }),
    (kwargs) => (response) => within(kwargs.relation, kwargs.num_sentences)(countSentences(response)),
  ),
  /** The response has `num_paragraphs` paragraphs separated by `***`. Only the first and the last may be blank; they then do not count. */
  "length_constraints:number_paragraphs": kind(
    z.strictObject({ num_paragraphs: count }),
    (kwargs) => (response) => {
      const paragraphs = response.split(divider);
      const isBlank = paragraphs.map((paragraph) => strip(paragraph) === "");
      if (isBlank.slice(1, -1).includes(true)) return false;
      return paragraphs.length - isBlank.filter(Boolean).length === kwargs.num_paragraphs;
    },
  ),
  "length_constraints:number_words": kind(
    z.strictObject({ relation, num_words: count }),
    (kwargs) => (response) => within(kwargs.relation, kwargs.num_words)(countWords(response)),
  ),
  /**
   * The response has `num_paragraphs` paragraphs separated by blank lines, and the `nth_paragraph` (from 1) begins with
   * `first_word`. Blank paragraphs do not count, but shift the numbers of later paragraphs.
   */
  "length_constraints:nth_paragraph_first_word": kind(
    z
      .strictObject({ num_paragraphs: count, nth_paragraph: count, first_word: text })
      .refine((kwargs) => kwargs.nth_paragraph <= kwargs.num_paragraphs, {
        path: ["nth_paragraph"],
        error: ({ input }) =>
          `at most num_paragraphs, which is ${(input as { readonly num_paragraphs: number }).num_paragraphs}`,
      }),
    (kwargs) => (response) => {
      const paragraphs = response.split("\n\n");
      const filled = paragraphs.filter((paragraph) => strip(paragraph) !== "").length;
      const isWhole = filled === kwargs.num_paragraphs;
      return isWhole && firstWord(paragraphs[kwargs.nth_paragraph - 1]!) === kwargs.first_word.toLowerCase();
    },
  ),
  /** The response has at least `num_placeholders` placeholders in square brackets, each on one line. */
  "detectable_content:number_placeholders": kind(
    z.strictObject({ num_placeholders: count }),
    (kwargs) => (response) =>
      response.split("\n").reduce((sum, line) => sum + countPlaceholders(line), 0) >= kwargs.num_placeholders,
  ),
  /** The response contains `postscript_marker`, case-insensitively; `P.S.` and `P.P.S` may have a space between letters. */
  "detectable_content:postscript": kind(z.strictObject({ postscript_marker: text }), (kwargs) => {
    const marker = kwargs.postscript_marker.trim();
    const regex = postscripts[marker] ?? pattern(literally(marker.toLowerCase()));
    return (response) => regex.test(response.toLowerCase());
  }),
  /** The response has exactly `num_bullets` lines that begin with `*` or `-`. */
  "detectable_format:number_bullet_lists": kind(
    z.strictObject({ num_bullets: count }),
    (kwargs) => (response) =>
      countOf(starBullet, response) + countOf(dashBullet, response) === kwargs.num_bullets,
  ),
  /** The response contains one of the three answers, verbatim. */
  "detectable_format:constrained_response": kind(
    nothing,
    () => (response) => constrained.some((answer) => response.includes(answer)),
  ),
  /** The response has at least `num_highlights` parts in `*…*` or `**…**` that are not blank. */
  "detectable_format:number_highlighted_sections": kind(
    z.strictObject({ num_highlights: count }),
    (kwargs) => (response) => {
      const filled = (regex: RegExp) =>
        (response.match(regex) ?? []).filter((whole) => strip(strip(whole, "*")) !== "").length;
      return filled(highlighted) + filled(doublyHighlighted) >= kwargs.num_highlights;
    },
  ),
  /** The response has at least `num_sections` sections, each introduced by `section_spliter` and a number: `Section 1`. */
  "detectable_format:multiple_sections": kind(
    z.strictObject({ section_spliter: text, num_sections: count }),
    (kwargs) => {
      const spliter = literally(kwargs.section_spliter.trim());
      const beginning = pattern(String.raw`\s?${spliter}\s?\d+\s?`, "g");
      return (response) => countOf(beginning, response) >= kwargs.num_sections;
    },
  ),
  /** The response is JSON, with or without a Markdown fence; NaN and Infinity are accepted, as in Python. */
  "detectable_format:json_format": kind(nothing, () => (response) => {
    let inner = strip(response);
    for (const fence of fenced) if (inner.startsWith(fence)) inner = inner.slice(fence.length);
    return isJson(strip(inner.endsWith("```") ? inner.slice(0, -3) : inner));
  }),
  /** The response has a title that is not blank in `<<…>>`, on one line. */
  "detectable_format:title": kind(
    nothing,
    () => (response) =>
      response.split("\n").some((line) => {
        const [start, end] = [line.indexOf("<<"), line.lastIndexOf(">>")];
        const title = line.slice(start, end);
        return start >= 0 && end > start + 2 && strip(stripEnd(stripStart(title, "<"), ">")) !== "";
      }),
  ),
  /** The response has two different answers, separated by `******`; a blank part may come before or after them. */
  "combination:two_responses": kind(nothing, () => (response) => {
    const parts = response.split("******").map((part) => strip(part));
    if (parts.slice(1, -1).includes("")) return false;
    const filled = parts.filter((part) => part !== "");
    return filled.length === 2 && filled[0] !== filled[1];
  }),
  /** The response begins with `prompt_to_repeat`, case-insensitively. */
  "combination:repeat_prompt": kind(z.strictObject({ prompt_to_repeat: text }), (kwargs) => {
    const prompt = strip(kwargs.prompt_to_repeat).toLowerCase();
    return (response) => strip(response).toLowerCase().startsWith(prompt);
  }),
  /** The response ends with `end_phrase`, case-insensitively; a double quotation mark may follow. */
  "startend:end_checker": kind(z.strictObject({ end_phrase: text }), (kwargs) => {
    const phrase = strip(kwargs.end_phrase).toLowerCase();
    return (response) => strip(strip(response), '"').toLowerCase().endsWith(phrase);
  }),
  /** The response is wrapped in straight double quotation marks. */
  "startend:quotation": kind(nothing, () => (response) => {
    const whole = strip(response);
    return whole.length > 1 && whole.startsWith('"') && whole.endsWith('"');
  }),
  /** The number of words in capitals is `capital_relation` `capital_frequency`. A hyphenated word counts once. */
  "change_case:capital_word_frequency": kind(
    z.strictObject({ capital_relation: relation, capital_frequency: count }),
    (kwargs) => (response) =>
      within(
        kwargs.capital_relation,
        kwargs.capital_frequency,
      )(treebankWords(response).filter(isUpper).length),
  ),
  /** The response is English, without lower-case letters. */
  "change_case:english_capital": kind(nothing, () => (response) => isUpper(response) && isIn(response, "en")),
  /** The response is English, without upper-case letters. */
  "change_case:english_lowercase": kind(
    nothing,
    () => (response) => isLower(response) && isIn(response, "en"),
  ),
  /** The response has no comma. Commas of other scripts do not count. */
  "punctuation:no_comma": kind(nothing, () => (response) => !response.includes(",")),
};
