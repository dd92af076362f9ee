import * as z from "zod";
import { parseOptions, quoteValue } from "@periodic-eval/contracts/options";
import { ruleGrader, type Grader, type GradeRequest } from "@periodic-eval/core";
import { stripThinking } from "@periodic-eval/core/evaluations";
import type { VerifierArgs } from "@periodic-eval/core/grading";

/** Returns the reward, from 0 to 1, of an answer whose thinking is removed. `finish` is undefined if it is unknown. */
type Rule = (answer: string, finish?: GradeRequest["finish"]) => number;

/** A rule, and the version of its rewards. */
interface VersionedRule {
  readonly rule: Rule;
  readonly version: number;
}

/** Creates a rule. Throws a PeriodicEvalError `config` at `where` for wrong arguments. */
type OpenRule = (args: VerifierArgs, where: string) => VersionedRule;

/** An answer gets the full reward up to the first number of sentences, and none from the second number on. */
const [concise, verbose] = [3, 9];

/** Returns 1 for an answer without emoji, and 0 for one with emoji or without a word. */
export const noEmoji: Rule = (answer) => (findEmoji(answer).length === 0 && countWords(answer) > 0 ? 1 : 0);

/**
 * Returns 1 up to three sentences, and falls linearly to 0 at nine. Returns 0 for an answer without a word and for one that was cut
 * off, so that a model that stops answering does not count as concise. The text shows a cut only if `finish` is unknown.
 */
export const conciseness: Rule = (answer, finish) => {
  const cutOff = finish === undefined ? isCutOff(answer) : finish === "length";
  return countWords(answer) === 0 || cutOff ? 0 : brevity(answer);
};

const brevity: Rule = (answer) =>
  Math.min(1, Math.max(0, (verbose - countSentences(answer)) / (verbose - concise)));

/**
 * Returns 1 for an answer that contains one of the strings, in any case. Ignores the context of the match.
 *
 * @param wholeWords Whether a match inside a longer word does not count.
 */
export function saysOneOf(texts: readonly string[], wholeWords: boolean): Rule {
  const escaped = texts.map((text) =>
    text
      .trim()
      .replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
      .replaceAll(/\s+/g, String.raw`\s+`),
  );
  const body = `(?:${escaped.join("|")})`;
  const pattern = new RegExp(wholeWords ? String.raw`(?<![\p{L}\p{N}])${body}(?![\p{L}\p{N}])` : body, "iu");
  return (answer) => (pattern.test(answer) ? 1 : 0);
}

const withoutArgs =
  (versioned: VersionedRule): OpenRule =>
  (args, where) => {
    parseOptions(where, z.strictObject({}), args);
    return versioned;
  };

const namesRule = "a name, or a non-empty array of names";
const isName = (value: unknown) => typeof value === "string" && value.trim() !== "";
const identityArgs = z.strictObject({
  /** The names that the model may call itself. */
  says: z
    .custom<string | readonly string[]>(
      (value) => isName(value) || (Array.isArray(value) && value.length > 0 && value.every(isName)),
      namesRule,
    )
    .meta({ fix: "Write the names that the model may call itself." })
    .default("Kuro"),
});

export const shippedVerifiers: Readonly<Record<string, OpenRule>> = {
  no_emoji: withoutArgs({ rule: noEmoji, version: 1 }),
  concise: withoutArgs({ rule: conciseness, version: 2 }),
  identity(args, where) {
    const { says } = parseOptions(where, identityArgs, args);
    return { rule: saysOneOf(typeof says === "string" ? [says] : says, false), version: 2 };
  },
};

/**
 * Creates a shipped grader by its name. Its verdicts have the score `reward`, from 0 to 1. Thinking (`<think>…</think>`) is
 * removed first; if it does not end, the verdict is `unparsed`.
 *
 * @throws PeriodicEvalError `config` for wrong arguments.
 */
export function shippedGrader(name: string, args: VerifierArgs, where: string): Grader {
  return graderOf(name, args, shippedVerifiers[name]!(args, where));
}

function graderOf(name: string, args: VerifierArgs, { rule, version }: VersionedRule): Grader {
  const graderFor = (finish: GradeRequest["finish"]) =>
    ruleGrader({
      name,
      version: `${version} ${quoteValue(args)}`,
      rule(_, text) {
        const answer = stripThinking(text);
        return answer === null ? null : { reward: rule(answer, finish) };
      },
    });
  return {
    ...graderFor(undefined),
    async grade(requests, options) {
      const verdicts = requests.map((request) => graderFor(request.finish).grade([request], options));
      return (await Promise.all(verdicts)).flat();
    },
  };
}

/** Signs that ordinary text contains. They count as emoji only before U+FE0F. */
const signs = "©®™";

/** One pictograph with its variation selector, skin tone and flag tags. A pictograph before U+FE0E is text, not emoji. */
const pictograph = String.raw`(?:[${signs}]\uFE0F|(?![${signs}])[\p{Emoji_Presentation}\p{Extended_Pictographic}](?!\uFE0E))(?:\uFE0F|\p{Emoji_Modifier})?[\u{E0020}-\u{E007F}]*`;
const keycap = String.raw`[0-9#*]\uFE0F?\u20E3`;
const flag = String.raw`\p{Regional_Indicator}{2}`;

const emoji = new RegExp(`${keycap}|${flag}|${pictograph}(?:\\u200D${pictograph})*`, "gu");

/**
 * Returns the emoji of a string. A sequence joined by U+200D, a flag and a keycap each count as one. Uses Unicode's properties
 * Emoji_Presentation and Extended_Pictographic; digits, `#` and `*` alone do not count, and ©, ® and ™ only before U+FE0F.
 */
export function findEmoji(text: string): readonly string[] {
  return text.match(emoji) ?? [];
}

const sentences = new Intl.Segmenter("en", { granularity: "sentence" });
const words = new Intl.Segmenter("en", { granularity: "word" });

/** Lower-case abbreviations with their final full stop. Omits those that are also words (`No.`). */
const abbreviations = new Set(
  (
    "mr mrs ms dr prof st sr jr vs etc e.g i.e cf al approx fig figs vol pp p ch eds inc ltd co corp dept est " +
    "gen lt sgt capt rev hon gov sen a.m p.m u.s u.k u.n ph.d b.c a.d jan feb apr jun jul aug sep sept oct nov dec"
  )
    .split(" ")
    .map((word) => `${word}.`),
);

/** A list marker: `1.`, `2)`, `-`. */
const marker = /^(?:\d{1,3}[.)]|[-*+•–])\s+/u;

/** Whether the last word of a segment is an abbreviation or an initial: `Dr.`, `e.g.`, `J.`; but not `I.`, which is a word. */
function endsInAbbreviation(segment: string): boolean {
  let end = segment.trimEnd().length;
  while (end > 0 && `"')]`.includes(segment[end - 1]!)) end -= 1;
  const last = segment
    .slice(0, end)
    .split(/[^\p{L}.]/u)
    .at(-1)!;
  return abbreviations.has(last.toLowerCase()) || /^(?!I\.$)(?:\p{Lu}\.)+$/u.test(last);
}

/**
 * Counts the sentences of an English text by Unicode's boundaries (UAX 29), with `Intl.Segmenter`. An abbreviation, an
 * initial, a list number and a decimal do not end a sentence. A list entry is a sentence, with or without a full stop. A line
 * that begins in lower case continues the line before it.
 */
export function countSentences(text: string): number {
  let count = 0;
  for (const line of text.replaceAll(/(?<![ \t])[ \t]*\r?\n(?=\p{Ll})/gu, " ").split(/\r?\n/)) {
    const entry = line.trim().replace(marker, "");
    const segments = [...sentences.segment(entry)].map(({ segment }) => segment);
    const ends = segments.filter(
      (segment, at) =>
        /[\p{L}\p{N}]/u.test(segment) && (at === segments.length - 1 || !endsInAbbreviation(segment)),
    );
    // A line whose only words end in an abbreviation is still one sentence.
    const hasWords = segments.some((segment) => /[\p{L}\p{N}]/u.test(segment));
    count += Math.max(ends.length, hasWords ? 1 : 0);
  }
  return count;
}

/** Counts words and numbers by the same boundaries; does not count punctuation. */
export function countWords(text: string): number {
  // A segmenter takes time in proportion to its whole text for each segment.
  return text.split(/\s+/).reduce((count, part) => count + wordsIn(part), 0);
}

const wordsIn = (part: string): number =>
  [...words.segment(part)].filter(({ isWordLike }) => isWordLike).length;

/** An open bracket, but not `:(` and `;-(`. */
const openBracket = /(?<![:;]-?)[([{]/u;

/**
 * Whether a text is clearly incomplete: a code block stays open, or the last line ends with a comma, a colon, a dash or an open
 * bracket. Any other text can be complete, also without a full stop: `Paris`, `Yes, it is`, `See https://example.com`.
 */
export function isCutOff(text: string): boolean {
  const trimmed = text.trim();
  if ((trimmed.match(/^[^\S\n\r\u2028\u2029]*```/gm)?.length ?? 0) % 2 === 1) return true;
  const line = trimmed.split(/\r?\n/).at(-1)!;
  // The code in `{` is not an open bracket.
  const prose = line.replaceAll(/`[^`]*`/g, "``");
  const closed = Math.max(...[")", "]", "}"].map((bracket) => prose.lastIndexOf(bracket)));
  return /[,，、:：–—]$/u.test(prose) || openBracket.test(prose.slice(closed + 1));
}
