import { isRecord } from "@periodic-eval/core/internal";

/** Replacements that multiply a text by more than this could exhaust the memory. */
const maxGrowth = 1_000;

/**
 * Returns the factor by which the replacements of a normalizer or decoder could multiply the length of a text. A regular expression
 * counts as one that matches before every character.
 */
export function growthOf(part: unknown): number {
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

/** Whether the regular expressions of a pipeline may together take very long for a short text. */
export const holdsSlowPattern = (part: unknown): boolean => waysIn(part) > maxWays;

/** Published pipelines have less than half. */
const maxWays = 200;
/** In characters. Published ones have less than half. */
const maxPattern = 2_000;
const quantifiers = /[*+?]|\{\d*,?\d*\}/y;

function waysIn(part: unknown): number {
  if (!isRecord(part) && !Array.isArray(part)) return 0;
  return Object.entries(part).reduce(
    (sum, [name, inner]) =>
      sum > maxWays
        ? sum
        : sum + (name === "Regex" && typeof inner === "string" ? waysOf(inner) : waysIn(inner)),
    0,
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
 * Returns the number of ways in which the optional parts and alternatives of a regular expression combine; each way takes at most
 * the cube of a text's length. Infinity if it repeats a group that can match one text in several ways, as in `(a+)+` or `(a?a){9}`,
 * which takes exponential time, or has three repetitions in one alternative, as in `a*a*a*b`.
 */
function waysOf(pattern: string): number {
  if (pattern.length > maxPattern) return Infinity;
  // Escapes and classes are single characters here.
  const plain = pattern.replaceAll(/\\./gsu, "x").replaceAll(/\[[^\]]*\]/gu, "x");
  /** Of each open group: its alternatives, and whether it can match in several ways. */
  const open: { alternatives: number; isAmbiguous: boolean }[] = [];
  let [sum, ways, repetitions] = [0, 1, 0];
  for (let at = 0; at < plain.length; at++) {
    const sign = plain[at]!;
    quantifiers.lastIndex = at + 1;
    const [quantifier = ""] = sign === "(" ? [] : (quantifiers.exec(plain) ?? []);
    const isOptional = quantifier === "?";
    const isChoice = /[*+?,]/.test(quantifier);
    if (isOptional) ways *= 2;
    else if (isChoice && ++repetitions > 2) return Infinity;
    if (sign === "(") open.push({ alternatives: 1, isAmbiguous: false });
    else if (sign === "|" && open.length > 0) {
      open.at(-1)!.alternatives += 1;
      open.at(-1)!.isAmbiguous = true;
    } else if (sign === "|") {
      sum += ways;
      [ways, repetitions] = [1, 0];
    }
    const group = sign === ")" ? open.pop() : undefined;
    ways *= group?.alternatives ?? 1;
    if (group?.isAmbiguous === true && quantifier !== "" && !isOptional) return Infinity;
    if (open.length > 0) open.at(-1)!.isAmbiguous ||= isChoice || group?.isAmbiguous === true;
  }
  return sum + ways;
}
