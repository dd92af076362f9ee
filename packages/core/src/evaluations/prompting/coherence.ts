// A rule of coherence without a judge, a model or a language: it reads only the answers of one measurement. Its limits were
// measured (docs/decisions/2026-11-28-incoherent-answers.md). True words in a wrong order pass: only a judge sees them.
import { grouped } from "../../statistics/grouping.ts";

interface AnswerText {
  readonly question: string;
  /** Null if there is no answer: the thinking did not end. */
  readonly answer: string | null;
}

/** Why the text of an answer says nothing. */
export type TextFault = "empty" | "repeated" | "incoherent";

/** Below this share of distinct sequences of eight characters, a text repeats itself. */
const leastDistinct = 0.5;
/** Above this share of odd words, a text is incoherent. */
const mostOdd = 0.15;
/** Below this share of words that also occur in answers to other questions, a text is incoherent. */
const leastShared = 0.2;
/** Shorter texts, and fewer other answers, show nothing. */
const [leastCharacters, leastWords, leastOthers] = [40, 8, 10];

/**
 * Returns, for each answer of a measurement, why its text says nothing; null if it may say something.
 *
 * - `empty`: no letter, digit or pictogram.
 * - `repeated`: fewer than half of its sequences of eight characters are distinct.
 * - `incoherent`: more than 15 % of its words are odd (invalid characters, letters glued to symbols, capitals or other scripts, empty lines in series),
 *   or fewer than 20 % of its words occur in an answer to another question. Every language repeats its frequent words, random
 *   words do not.
 */
export function textFaults(answers: readonly AnswerText[]): readonly (TextFault | null)[] {
  const texts = answers.map(({ question, answer }) => ({ question, words: wordsOf(answer ?? "") }));
  const questions = new Map<string, Set<string>>();
  for (const { question, words } of texts)
    for (const word of words) questions.set(word, (questions.get(word) ?? new Set()).add(question));
  const sizes = grouped(texts, ({ question }) => question);
  return texts.map(({ question, words }, at) => {
    const { answer } = answers[at]!;
    if (answer === null) return null;
    const fault = faultOf(answer);
    const others = texts.length - sizes.get(question)!.length;
    if (fault !== null || words.length < leastWords || others < leastOthers) return fault;
    const shared = words.filter((word) => questions.get(word)!.size > 1).length;
    return shared < leastShared * words.length ? "incoherent" : null;
  });
}

/** Returns the answers of a measurement, those that say nothing with the `fault` of their text. */
export function withFaults<R extends AnswerText>(
  answers: readonly R[],
): readonly (R & { readonly fault?: TextFault })[] {
  const faults = textFaults(answers);
  return answers.map((row, at) => (faults[at] === null ? row : { ...row, fault: faults[at]! }));
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
