// A rule of coherence without a judge, a model or a language: it reads only the answers of one measurement. Its limits were
// measured (docs/decisions/incoherent-answers.md). Wrong words in a fluent order pass: only a judge sees them.
import { grouped } from "@periodic-eval/contracts";

interface AnswerText {
  readonly question: string;
  /** Null if there is no answer: the thinking did not end. */
  readonly answer: string | null;
}

/** Why the text of an answer says nothing. */
export type TextFault = "empty" | "repeated" | "incoherent";

/** Below this share of distinct sequences of eight characters, a text repeats itself. */
const leastDistinct = 0.5;
/** A text with a larger share of odd words is incoherent. */
const mostOdd = 0.15;
/** A text in which a smaller share of words also occurs in answers to other questions is incoherent. */
const leastShared = 0.2;
/** Highest ratio of word pairs that occur elsewhere reversed to pairs that occur elsewhere; above it, the order is random. */
const mostReversed = 0.5;
/** Of all pairs, fewer occur elsewhere in random order, beyond those that occur reversed. */
const leastOrdered = 0.02;
/** Shorter texts, and fewer other answers, show nothing. */
const [leastCharacters, leastWords, leastOthers] = [40, 8, 10];
/** So do fewer pairs that occur elsewhere; and fewer pairs and other answers, of pairs that do not. */
const [leastElsewhere, leastPairs, leastOthersOfPairs] = [30, 300, 19];

/**
 * Returns, for each answer of a measurement, why its text says nothing; null if it may say something.
 *
 * - `empty`: no letter, digit or pictogram.
 * - `repeated`: fewer than half of its sequences of eight characters are distinct.
 * - `incoherent`: more than 15 % of its words are odd (invalid characters, letters glued to symbols, capitals or other scripts, empty lines in series),
 *   or fewer than 20 % of its words occur in an answer to another question. Every language repeats its frequent words, random
 *   words do not. All answers of two words or more are, if the words of the measurement are in random order ({@link isShuffled}).
 */
export function textFaults(answers: readonly AnswerText[]): readonly (TextFault | null)[] {
  const texts = answers.map(({ question, answer }) => ({ question, parts: wordsOf(answer ?? "") }));
  const isElsewhere = occurrences(texts);
  const sizes = grouped(texts, ({ question }) => question);
  const largest = Math.max(0, ...[...sizes.values()].map(({ length }) => length));
  const shuffled = isShuffled(answers, texts.length - largest);
  return texts.map(({ question, parts: words }, at) => {
    const { answer } = answers[at]!;
    if (answer === null) return null;
    const fault = faultOf(answer);
    const otherTexts = texts.length - sizes.get(question)!.length;
    if (fault !== null || otherTexts < leastOthers) return fault;
    if (shuffled && words.length > 1) return "incoherent";
    const shared = words.filter((word) => isElsewhere(word, question)).length;
    return words.length >= leastWords && shared < leastShared * words.length ? "incoherent" : null;
  });
}

/** Returns the answers of a measurement, those that say nothing with the `fault` of their text. */
export function withFaults<R extends AnswerText>(
  answers: readonly R[],
): readonly (R & { readonly fault?: TextFault })[] {
  const faults = textFaults(answers);
  return answers.map((row, at) => (faults[at] === null ? row : { ...row, fault: faults[at]! }));
}

/**
 * Whether the words of all answers are in random order. For each pair of neighbouring words, an answer to another question can have the same
 * pair, or the same two words in reverse. Prose of any language has at least twice as many of the first, and more of them by at least
 * 4 % of its pairs; shuffled words have as many of each, random words have neither.
 */
function isShuffled(answers: readonly AnswerText[], fewestOthers: number): boolean {
  const texts = answers.map(({ question, answer }) => ({ question, pairs: pairsOf(answer ?? "") }));
  const isElsewhere = occurrences(
    texts.map(({ question, pairs }) => ({ question, parts: pairs.map((pair) => pair.join(" ")) })),
  );
  let [same, reversed, total] = [0, 0, 0];
  for (const { question, pairs } of texts)
    for (const [word, next] of pairs) {
      total++;
      if (isElsewhere(`${word} ${next}`, question)) same++;
      if (isElsewhere(`${next} ${word}`, question)) reversed++;
    }
  if (same + reversed >= leastElsewhere && reversed > mostReversed * same) return true;
  return total >= leastPairs && fewestOthers >= leastOthersOfPairs && same - reversed < leastOrdered * total;
}

/** Returns a function that says whether a part of a text occurs in an answer to another question. */
function occurrences(texts: readonly { readonly question: string; readonly parts: readonly string[] }[]) {
  const questions = new Map<string, Set<string>>();
  for (const { question, parts } of texts)
    for (const part of parts) questions.set(part, (questions.get(part) ?? new Set()).add(question));
  return (part: string, question: string): boolean => {
    const where = questions.get(part);
    return where !== undefined && where.size > (where.has(question) ? 1 : 0);
  };
}

function faultOf(text: string): TextFault | null {
  if (!/[\p{L}\p{N}\p{Extended_Pictographic}]/u.test(text)) return "empty";
  if (distinctShare(text) < leastDistinct) return "repeated";
  // Two empty lines or more count as a word.
  const parts = withoutCode(text)
    .trim()
    .split(/(\n\s*\n\s*\n)|\s+/u)
    .filter(Boolean);
  return parts.filter(isOdd).length > mostOdd * parts.length ? "incoherent" : null;
}

function distinctShare(text: string): number {
  const characters = Array.from(text.trim().replaceAll(/\s+/gu, " "));
  if (characters.length < leastCharacters) return 1;
  const sequences = characters.slice(7).map((_, at) => characters.slice(at, at + 8).join(""));
  return new Set(sequences).size / sequences.length;
}

/** Code between fences has other words. */
const withoutCode = (text: string): string => text.replaceAll(/```[\s\S]*?(?:```|$)/gu, " ");

/** Returns the words in lower case. Scripts without spaces between words give one character each. */
const wordsOf = (text: string): readonly string[] =>
  withoutCode(text)
    .toLowerCase()
    .match(
      /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}]|[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*/gu,
    ) ?? [];

/** Returns the pairs of neighbouring words, which only a space separates. The items of a list have no order. */
const pairsOf = (text: string): readonly (readonly [string, string])[] =>
  withoutCode(text)
    .split(/[^\p{L}\p{M}'’ ]+/u)
    .flatMap((part) => {
      const words = wordsOf(part);
      return words.slice(1).map((word, at) => [words[at]!, word] as const);
    })
    .filter(([word, next]) => word !== next);

const oddPatterns: readonly RegExp[] = [
  // Characters that no text has.
  // oxlint-disable-next-line no-control-regex -- these are looked for
  /[\uFFFD\u0000-\u0008\u000E-\u001F\u007F]/u,
  // heLloWorld, ACACstill
  /\p{Ll}\p{Lu}.*\p{Ll}\p{Lu}|\p{Lu}{3,}\p{Ll}{2,}/u,
  // fmJe;zer, what?!so
  /\p{Script=Latin}[!"#$%&*;<=>?\\^`{|}~[\]]+\p{Script=Latin}/u,
  // learn2lums
  /\p{L}{2,}\d+\p{L}{2,}/u,
  /\p{Script=Latin}{40,}/u,
  // a.,, what  ,that
  /[.,;][,;]|,[.]|^[,;.]+\p{L}/u,
  // An opening bracket alone.
  /^[([]+$/u,
  // Two scripts in one word.
  /\p{Script=Latin}[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Devanagari}\p{Script=Thai}]/u,
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Devanagari}\p{Script=Thai}]\p{Script=Latin}/u,
];

const isOdd = (word: string): boolean =>
  word.startsWith("\n") ||
  (!/^\W*(?:https?:|www\.)|@/u.test(word) && oddPatterns.some((pattern) => pattern.test(word)));
