import { isRecord } from "@periodic-eval/core/internal";

/** Replacements that multiply a text by more than this could exhaust the memory. */
const maxGrowth = 1_000;

/**
 * Returns the factor by which the replacements of a normalizer or decoder could multiply the length of a text. A regular expression
 * counts as one that matches before every character.
 */
function growthOf(part: unknown): number {
  if (!isRecord(part)) return 1;
  const { pattern, content, normalizers, decoders } = part;
  const inner = [normalizers, decoders].filter(Array.isArray).flat();
  const own =
    isRecord(pattern) && typeof content === "string" ? growthOfReplacement(pattern["String"], content) : 1;
  return inner.reduce<number>((product, one) => product * growthOf(one), own);
}

const growthOfReplacement = (text: unknown, { length }: string): number =>
  typeof text === "string" && text !== "" ? Math.max(1, length / text.length) : 1 + length;

/** Whether the replacements of this normalizer or decoder multiply a text too often. */
export const growsTooMuch = (part: unknown): boolean => growthOf(part) > maxGrowth;

/** Whether a pipeline holds a regular expression that may take very long for a short text. */
export function holdsSlowPattern(part: unknown): boolean {
  if (!isRecord(part) && !Array.isArray(part)) return false;
  return Object.entries(part).some(([name, inner]) =>
    name === "Regex" && typeof inner === "string" ? mayBacktrackForLong(inner) : holdsSlowPattern(inner),
  );
}

/** Whether a model may take seconds for a text of a thousand characters. No published model does. */
export function isSlowModel(model: Readonly<Record<string, unknown>>): boolean {
  const { max_input_chars_per_word: longest = 100, continuing_subword_prefix: prefix = "##" } = model;
  // WordPiece takes the cube of a word's length, and writes the prefix at each try.
  return (
    model["type"] === "WordPiece" &&
    !(Number(longest) <= 200 && typeof prefix === "string" && prefix.length < 10)
  );
}

/**
 * Whether a regular expression repeats a group that holds a repetition or alternatives, as in `(a+)+`, or has three repetitions in
 * one alternative, as in `a*a*a*b`. Only such groups can match one text in exponentially many ways; three repetitions take the
 * fourth power of a text's length.
 */
function mayBacktrackForLong(pattern: string): boolean {
  // Escapes and classes are single characters here.
  const plain = pattern.replaceAll(/\\./gsu, "x").replaceAll(/\[[^\]]*\]/gu, "x");
  /** Of each open group and the pattern itself: whether it can match in several ways. */
  const open = [false];
  let repetitions = 0;
  for (let at = 0; at < plain.length; at++) {
    const sign = plain[at]!;
    const isRepeated = /^(?:[*+]|\{\d*,\d*\})/.test(plain.slice(at + 1, at + 20));
    if (sign === "|") repetitions = 0;
    else if (isRepeated && ++repetitions > 2) return true;
    if (sign === "(") open.push(false);
    else if (sign === ")") {
      const isAmbiguous = open.pop() ?? false;
      if (isAmbiguous && isRepeated) return true;
      open[open.length - 1] ||= isAmbiguous || isRepeated;
    } else if (sign === "|" || isRepeated) open[open.length - 1] = true;
  }
  return false;
}
